/** What every job of every scenario carries: its index, by which its delivery is checked, and the time it was sent. */
export interface Payload {
  readonly n: number
  /** Milliseconds on the clock that all processes of the machine share; 0 where no latency is measured. */
  readonly t: number
  readonly pad: string
}

export const PAYLOAD_BYTES = 200

/** JSON of exactly 200 bytes, so that no contender gains by short numbers. */
export function makePayload(n: number, t = 0): Payload {
  const bare = JSON.stringify({ n, t, pad: '' }).length
  return { n, t, pad: 'x'.repeat(PAYLOAD_BYTES - bare) }
}

export function makePayloads(count: number, from = 0): Payload[] {
  return Array.from({ length: count }, (_, index) => makePayload(from + index))
}

/** Cuts a list into the batches a contender takes. */
export function* inBatches<Item>(items: readonly Item[], size: number): Generator<readonly Item[]> {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size)
}

/** A reading that two processes of one machine can compare, finer than a millisecond. */
export function sharedNowMs(): number {
  return performance.timeOrigin + performance.now()
}

/** The same payload as an SQL expression over a column `n`, for filling a store from inside. */
export const FILLED_PAYLOAD = `'{"n":' || n || ',"t":0,"pad":"' || substr('${'x'.repeat(PAYLOAD_BYTES)}', 1, ${PAYLOAD_BYTES - 21} - length(n)) || '"}'`
