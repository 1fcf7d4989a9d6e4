import type { EventName, Events, MillEvents } from '../events.ts'
import type { Clock } from '../time/clock.ts'
import type { AdminContext } from './context.ts'
import type { StreamEvents } from './contract/index.ts'
import { Alert } from './contract/operating.ts'
import type { DeepReadonly } from './contract/route.ts'
import { HttpError } from './problems.ts'

const CLIENTS_MAX = 100
/** Buffered for a slow client. Beyond it the client is disconnected, and reconnects when it can. */
const BUFFER_BYTES_MAX = 1_048_576
/** Shorter than the idle timeout of common proxies. */
const HEARTBEAT_MS = 15_000
const JOBS_EVERY_MS = 250
const JOBS_MAX = 100

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
}

type Client = ReadableStreamDefaultController<Uint8Array>
interface Connection {
  /** Ends a slow one. Without it the client gets an error in its stream. */
  readonly hangUp: (() => void) | null
  /** Whether its caller may still listen: a login ends, also while its stream is open. */
  readonly isLetIn: () => boolean
}

type Sources = Pick<AdminContext, 'mill' | 'sampler' | 'operations' | 'alerting' | 'clock'>

/**
 * The event stream. One set of listeners serves all clients, and each event is encoded once. Without clients nothing
 * listens.
 */
export class Streams {
  readonly #sources: Sources
  readonly #clock: Clock
  readonly #clients = new Map<Client, Connection>()
  readonly #jobs = new Set<string>()
  readonly #alerts = new Map<string, string>()
  #detach: (() => void) | null = null
  #cancelFlush: (() => void) | null = null
  #lastOverview = ''

  constructor(sources: Sources) {
    this.#sources = sources
    this.#clock = sources.clock
  }

  open(hangUp: Connection['hangUp'] = null, isLetIn: Connection['isLetIn'] = () => true): Response {
    if (this.#clients.size >= CLIENTS_MAX) {
      throw new HttpError(429, 'ERR_TOO_MANY_STREAMS', `${CLIENTS_MAX} event streams are open; close one`)
    }
    let client: Client | null = null
    const stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          client = controller
          this.#add(controller, { hangUp, isLetIn })
        },
        cancel: () => {
          if (client !== null) this.#remove(client)
        },
      },
      new ByteLengthQueuingStrategy({ highWaterMark: BUFFER_BYTES_MAX }),
    )
    return new Response(stream, { headers: HEADERS })
  }

  get size(): number {
    return this.#clients.size
  }

  close(): void {
    for (const client of [...this.#clients.keys()]) this.#end(client)
  }

  #end(client: Client): void {
    this.#remove(client)
    client.close()
  }

  #add(client: Client, connection: Connection): void {
    this.#clients.set(client, connection)
    this.#detach ??= this.#attach()
    this.#write(client, encode(': welcome\nretry: 2000\n\n'))
    void this.#greet(client)
  }

  /** The page shows something at once, not after the next sample. */
  async #greet(client: Client): Promise<void> {
    try {
      const overview = await this.#sources.sampler.overview()
      if (this.#clients.has(client)) this.#write(client, frame('overview', overview))
    } catch {
      // The next sample brings it.
    }
  }

  #remove(client: Client): void {
    if (!this.#clients.delete(client) || this.#clients.size > 0) return
    this.#detach?.()
    this.#detach = null
    this.#cancelFlush?.()
    this.#cancelFlush = null
    this.#jobs.clear()
    this.#alerts.clear()
    this.#lastOverview = ''
  }

  #attach(): () => void {
    const { mill, sampler, operations } = this.#sources
    const detachers = [
      onJobs(mill.events, (id) => this.#noteJob(id)),
      sampler.subscribe(({ overview, point }) => {
        const { atMs: _, countedAtMs: __, ...facts } = overview
        const text = JSON.stringify(facts)
        if (text !== this.#lastOverview) this.#tell('overview', overview)
        this.#lastOverview = text
        this.#tell('point', point)
        this.#tellAlerts()
      }),
      operations.subscribe((operation) => this.#tell('operation', operation)),
      this.#beat(),
    ]
    this.#tellAlerts()
    return () => {
      for (const detach of detachers) detach()
    }
  }

  /** A comment, which clients ignore: it keeps the connection alive. */
  #beat(): () => void {
    let cancel = (): void => {}
    const arm = (): void => {
      cancel = this.#clock.after(HEARTBEAT_MS, () => {
        arm()
        for (const [client, { isLetIn }] of [...this.#clients]) if (!isLetIn()) this.#end(client)
        this.#broadcast(encode(': alive\n\n'))
      })
    }
    arm()
    return () => cancel()
  }

  /** A worker may finish thousands per second. A page only needs to know that something changed, and some of it. */
  #noteJob(id: string): void {
    if (this.#jobs.size >= JOBS_MAX) return
    this.#jobs.add(id)
    this.#cancelFlush ??= this.#clock.after(JOBS_EVERY_MS, () => {
      this.#cancelFlush = null
      const ids = [...this.#jobs]
      this.#jobs.clear()
      this.#tell('jobs', { ids })
    })
  }

  #tellAlerts(): void {
    for (const known of this.#sources.alerting.current()) {
      const alert = Alert.parse(known)
      const name = JSON.stringify([alert.rule, alert.labels])
      const text = JSON.stringify(alert)
      if (this.#alerts.get(name) === text) continue
      this.#alerts.set(name, text)
      this.#tell('alert', alert)
    }
  }

  #tell<Name extends keyof StreamEvents>(name: Name, data: DeepReadonly<StreamEvents[Name]>): void {
    this.#broadcast(frame(name, data))
  }

  #broadcast(bytes: Uint8Array): void {
    for (const client of [...this.#clients.keys()]) this.#write(client, bytes)
  }

  #write(client: Client, bytes: Uint8Array): void {
    client.enqueue(bytes)
    if ((client.desiredSize ?? 0) > 0) return
    const hangUp = this.#clients.get(client)?.hangUp ?? null
    this.#remove(client)
    if (hangUp === null) client.error(new Error('the client reads too slowly'))
    else hangUp()
  }
}

const encoder = new TextEncoder()

function encode(text: string): Uint8Array {
  return encoder.encode(text)
}

function frame(name: keyof StreamEvents, data: unknown): Uint8Array {
  return encode(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)
}

type WithJob = {
  [Name in EventName]: MillEvents[Name] extends { readonly job: { id: string } } ? Name : never
}[EventName]
const ABOUT_JOBS = [
  'job.started',
  'job.progress',
  'job.settled',
  'lease.lost',
  'lease.reaped',
] as const satisfies readonly WithJob[]

function onJobs(events: Events, note: (id: string) => void): () => void {
  const detachers = [
    events.on('job.enqueued', ({ id }) => note(id)),
    events.on('job.cancelled', ({ id }) => note(id)),
    events.on('desk.acted', ({ id }) => note(id)),
    ...ABOUT_JOBS.map((name) => events.on(name, ({ job }) => note(job.id))),
  ]
  return () => {
    for (const detach of detachers) detach()
  }
}
