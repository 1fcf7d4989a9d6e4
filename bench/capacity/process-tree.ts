/** Processor time of the processes that this one has started, from /proc: Linux only. */
import { readFileSync } from 'node:fs'

const TICKS_PER_SECOND = 100

/** In microseconds: what the descendants have used, and what they have inherited from children that have ended. */
export function descendantsCpuUs(): number {
  let ticks = 0
  const visit = (pid: number): void => {
    for (const child of childrenOf(pid)) {
      ticks += ticksOf(child)
      visit(child)
    }
  }
  visit(process.pid)
  return (ticks / TICKS_PER_SECOND) * 1e6
}

function childrenOf(pid: number): readonly number[] {
  return readOr('', `/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number)
}

/** utime, stime, cutime and cstime. The name in brackets before them may have blanks. */
function ticksOf(pid: number): number {
  const fields = readOr('', `/proc/${pid}/stat`).split(') ').at(-1)?.split(' ') ?? []
  return fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
}

function readOr(otherwise: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return otherwise
  }
}
