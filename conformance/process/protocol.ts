import type { Concurrency } from '../../src/job/slots.ts'

/** What the suite's own processes are told at their start, and what they say. */
export interface ChildOrders {
  readonly url: string
  readonly type: string
  readonly leaseMs: number
  readonly drainMs: number
  /** Of the worker's type. */
  readonly concurrency?: Concurrency
}

export type ChildReport =
  | { readonly event: 'ready' }
  | { readonly event: 'acknowledged'; readonly id: string }
  | { readonly event: 'started'; readonly id: string; readonly attempt: number }
  | { readonly event: 'aborted'; readonly id: string; readonly code: string }
  | { readonly event: 'settled'; readonly id: string; readonly kind: string }
  | { readonly event: 'lost'; readonly id: string; readonly reason: string }
  | { readonly event: 'stopping' }
  | { readonly event: 'freezing' }
  | { readonly event: 'stopped' }

export type ChildEvent = ChildReport['event']

/** What a handler does in a child; the payload of the jobs in the process cases. */
export type Deed = 'wait-for-go' | 'heed-signal' | 'kill-process' | 'enqueue-after-go'

/** The type of the job that `enqueue-after-go` stores. Nobody works on it. */
export const nextTypeOf = (type: string): string => `${type}-next`

export function parseOrders(text: string | undefined): ChildOrders {
  if (text === undefined) throw new Error('this module is started by the conformance suite, with its orders as JSON')
  return JSON.parse(text)
}

/** `sent` is called when the parent can read it. */
export function report(said: ChildReport, sent: () => void = () => {}): void {
  process.send?.(said, sent)
}

/** Resolves when the parent says `go`. */
export function told(word: 'go'): Promise<void> {
  return new Promise((resolve) => {
    const listen = (heard: unknown): void => {
      if (heard !== word) return
      process.off('message', listen)
      resolve()
    }
    process.on('message', listen)
  })
}

/** A process of the suite must not outlive the suite. */
const abandoned = (): void => process.exit(1)
process.once('disconnect', abandoned)

/** Nothing more will be said or heard; the process ends when nothing else keeps it alive. */
export function leave(): void {
  process.off('disconnect', abandoned)
  process.disconnect()
}
