import { monotonicFactory } from 'ulid'

const nextUlid = monotonicFactory()

/** A ULID: sortable by creation time, and strictly increasing within this process (X122). */
export function newJobId(nowMs: number): string {
  return nextUlid(nowMs)
}
