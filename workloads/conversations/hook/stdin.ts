import { read } from 'node:fs'
import { fieldOf } from '../../../src/errors.ts'
import type { Clock } from '../../../src/time/clock.ts'

const CHUNK_BYTES = 65_536
/** Trying to read an object that has not ended yet costs time, and only a small one comes without an end of the input. */
const EARLY_BYTES_MAX = 1_048_576
/** How soon to ask again when the descriptor does not block. */
const AGAIN_MS = 2

export interface StdinOptions {
  readonly clock: Pick<Clock, 'after'>
  /** For the next piece of the input. */
  readonly waitMs: number
  /** For all of it. */
  readonly waitAllMs: number
  readonly bytesMax: number
}

export type Arrived =
  | { readonly value: unknown }
  /** Why there is nothing to store, without any of what was read; and whether a thread still waits for the input. */
  | { readonly fault: string; readonly isBlocked: boolean }

/**
 * Reads one JSON object from standard input. It is complete when it can be read, so a caller that never closes its end
 * costs no time. Never rejects.
 */
export function readObject({ clock, waitMs, waitAllMs, bytesMax }: StdinOptions): Promise<Arrived> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let bytes = 0
    let isOver = false
    const finish = (arrived: Arrived): false => {
      cancel()
      cancelAll()
      isOver = true
      resolve(arrived)
      return false
    }
    const late = (): false => finish({ fault: 'standard input did not end in time', isBlocked: CAN_LEAVE_BLOCKED })
    let cancel = clock.after(waitMs, late)
    const cancelAll = clock.after(waitAllMs, late)
    const take = (chunk: Buffer): boolean => {
      if (isOver) return false
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes > bytesMax) return finish({ fault: `the input is longer than ${bytesMax} bytes`, isBlocked: false })
      const value = bytes <= EARLY_BYTES_MAX && isClosed(chunk) ? parse(chunks) : undefined
      if (value !== undefined) return finish({ value })
      // A long input takes its time on a busy machine.
      cancel()
      cancel = clock.after(waitMs, late)
      return true
    }
    const end = (code: string | null): void => {
      const value = parse(chunks)
      if (value !== undefined) finish({ value })
      else if (code !== null) finish({ fault: `standard input cannot be read (${code})`, isBlocked: false })
      else finish({ fault: `standard input is ${bytes === 0 ? 'empty' : 'not JSON'}`, isBlocked: false })
    }
    if (CAN_LEAVE_BLOCKED) readDescriptor(clock, take, end)
    else readStream(take, end)
  })
}

/** False: nothing more is wanted. */
type Take = (chunk: Buffer) => boolean
type End = (code: string | null) => void

/**
 * `process.stdin` takes 5 ms to load, and a read of its descriptor blocks a thread until something arrives. A process with
 * such a thread cannot exit, but it can become another program, where Node and the system have a call for it.
 */
const CAN_LEAVE_BLOCKED: boolean = process.platform !== 'win32' && process.execve !== undefined

function readDescriptor(clock: Pick<Clock, 'after'>, take: Take, end: End): void {
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES)
  const again = (): void => readDescriptor(clock, take, end)
  read(0, buffer, 0, CHUNK_BYTES, null, (error, count) => {
    const code = fieldOf(error, 'code')
    if (code === 'EAGAIN') clock.after(AGAIN_MS, again)
    else if (error !== null) end(String(code))
    else if (count === 0) end(null)
    else if (take(buffer.subarray(0, count))) again()
  })
}

function readStream(take: Take, end: End): void {
  process.stdin.on('data', (chunk: Buffer) => {
    if (!take(chunk)) process.stdin.destroy()
  })
  process.stdin.on('end', () => end(null))
  process.stdin.on('error', (error) => end(String(fieldOf(error, 'code'))))
}

/** Ends the process with 0 at once: the usual way out takes some milliseconds to clean up. */
export function leave(isBlocked: boolean): never {
  if (isBlocked) process.execve?.(process.execPath, [process.execPath, '-e', '0'], { ...process.env, NODE_OPTIONS: '' })
  const exit: unknown = Reflect.get(process, 'reallyExit')
  if (typeof exit === 'function') exit.call(process, 0)
  process.exit(0)
}

/** Whether the last character that is not blank is a closing brace. */
function isClosed(chunk: Buffer): boolean {
  for (let index = chunk.length - 1; index >= 0; index -= 1) {
    const byte = chunk[index] ?? 0
    if (byte > 0x20) return byte === 0x7d
  }
  return false
}

/** The error of JSON.parse quotes what it read, so it goes no further. */
function parse(chunks: readonly Buffer[]): unknown {
  try {
    return JSON.parse(
      Buffer.concat(chunks)
        .toString('utf8')
        .replace(/^\uFEFF/, ''),
    )
  } catch {
    return undefined
  }
}
