import type { Result } from '../api/client.ts'
import type { StreamEvents } from '../api/shapes.ts'
import { SseReader } from './sse.ts'

/** `waiting`: the connection was lost and is retried; `resting`: the page is hidden. */
export type LiveState = 'connecting' | 'live' | 'waiting' | 'resting'

type Name = keyof StreamEvents
type Listener = (data: never) => void
type Stream = ReadableStream<Uint8Array<ArrayBuffer>>

export interface LiveOptions {
  readonly open: (signal: AbortSignal) => Promise<Result<Stream>>
  /** Resolves after so many milliseconds, or when the signal aborts. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>
  /** Between 0 and 1; spreads the reconnects of many pages. */
  readonly random?: () => number
}

const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 15_000
/** The server sends something every 15 s; a connection that is silent for longer is dead, whatever TCP believes. */
const SILENCE_MS = 45_000

/** Doubles up to 15 s; the random part spreads the reconnects of many pages. */
export function waitBeforeTry(failures: number, random: number): number {
  const full = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (failures - 1))
  return Math.round(full * (0.5 + random / 2))
}

/** The event stream, kept open while it is needed. After each gap `onBack` says that events may be missing. */
export class Live {
  readonly #options: LiveOptions
  readonly #listeners = new Map<string, Set<Listener>>()
  readonly #stateListeners = new Set<(state: LiveState) => void>()
  readonly #backListeners = new Set<() => void>()
  #abort: AbortController | null = null
  #state: LiveState = 'resting'
  #wasLive = false

  constructor(options: LiveOptions) {
    this.#options = options
  }

  get state(): LiveState {
    return this.#state
  }

  on<N extends Name>(name: N, listener: (data: StreamEvents[N]) => void): () => void {
    const listeners = this.#listeners.get(name) ?? new Set()
    this.#listeners.set(name, listeners)
    listeners.add(listener)
    return () => listeners.delete(listener)
  }

  onState(listener: (state: LiveState) => void): () => void {
    this.#stateListeners.add(listener)
    return () => this.#stateListeners.delete(listener)
  }

  onBack(listener: () => void): () => void {
    this.#backListeners.add(listener)
    return () => this.#backListeners.delete(listener)
  }

  start(): void {
    if (this.#abort !== null) return
    this.#abort = new AbortController()
    void this.#run(this.#abort.signal)
  }

  stop(): void {
    this.#abort?.abort()
    this.#abort = null
    this.#become('resting')
  }

  async #run(signal: AbortSignal): Promise<void> {
    let failures = 0
    this.#become('connecting')
    while (!signal.aborted) {
      const result = await this.#options.open(signal)
      if (signal.aborted) return
      if (result.ok) {
        failures = 0
        this.#arrived()
        await this.#read(result.value, signal)
      } else if (result.problem.status === 401) {
        // The login starts the stream again.
        return this.#become('waiting')
      }
      if (signal.aborted) return
      failures += 1
      this.#become('waiting')
      await this.#options.wait(waitBeforeTry(failures, (this.#options.random ?? Math.random)()), signal)
    }
  }

  #arrived(): void {
    this.#become('live')
    if (this.#wasLive) for (const listener of this.#backListeners) listener()
    this.#wasLive = true
  }

  /** Ends when the stream does, for whatever reason. */
  async #read(stream: Stream, signal: AbortSignal): Promise<void> {
    const reader = stream.pipeThrough(new TextDecoderStream()).getReader()
    const sse = new SseReader()
    let heardAt = performance.now()
    const watch = setInterval(() => {
      if (performance.now() - heardAt > SILENCE_MS) void reader.cancel()
    }, SILENCE_MS / 9)
    try {
      for (;;) {
        const { done, value } = await reader.read()
        if (done || signal.aborted) return
        heardAt = performance.now()
        for (const { name, data } of sse.take(value)) this.#tell(name, data)
      }
    } catch {
      // The caller reconnects.
    } finally {
      clearInterval(watch)
    }
  }

  #tell(name: string, data: string): void {
    const listeners = this.#listeners.get(name)
    if (listeners === undefined || listeners.size === 0) return
    const event: unknown = JSON.parse(data)
    for (const listener of listeners) listener(event as never)
  }

  #become(state: LiveState): void {
    if (state === this.#state) return
    this.#state = state
    for (const listener of this.#stateListeners) listener(state)
  }
}
