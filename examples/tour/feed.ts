import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Mill } from 'millrace'
import { checksum, collectReport, countPrimes, indexDocs, parseLedger, SPOOL, tidySpool } from './jobs.ts'

/** The pause between two steps of a round. */
const PAUSE_MS = 700

const CHECKSUM_PATHS = ['package.json', 'src/errors.ts', 'src/client/mill.ts', 'src/engine/engine.ts', 'tsconfig.json']

/** What a round brought about: ids to wait for, and files that have yet to appear. */
interface Round {
  readonly number: number
  readonly ids: string[]
  readonly promised: Promise<void>[]
}

/** Waits without throwing when it is cut short. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {})
}

/** Rounds of jobs at a gentle rate, until the signal says stop or the given number of rounds is over. Returns all ids. */
export async function feed(mill: Mill, signal: AbortSignal, rounds: number): Promise<readonly string[]> {
  await mkdir(SPOOL, { recursive: true })
  const ids: string[] = []
  const promised: Promise<void>[] = []
  // The time makes names and revisions of a restarted tour new ones.
  const first = Math.floor(Date.now() / 1_000)
  for (let number = 0; number < rounds && !signal.aborted; number += 1) {
    for (const step of STEPS) {
      if (signal.aborted) break
      await step(mill, { number: first + number, ids, promised }, signal)
      await pause(PAUSE_MS, signal)
    }
  }
  // A job that waits for its file must find it after a restart too.
  await Promise.all(promised)
  return ids
}

type Step = (mill: Mill, round: Round, signal: AbortSignal) => Promise<void>

/** Several at once, one of them more urgent than the rest. */
const checksums: Step = async (mill, { ids }) => {
  const payloads = CHECKSUM_PATHS.map((path) => ({ path }))
  for (const { id } of await mill.enqueueMany(checksum, payloads)) ids.push(id)
  ids.push((await mill.enqueue(checksum, { path: 'package-lock.json' }, { priority: 1 })).id)
}

const longCount: Step = async (mill, { ids }) => {
  ids.push((await mill.enqueue(countPrimes, { below: 400_000 })).id)
}

/** The report appears a little after the job that wants it. */
const lateReport: Step = async (mill, { number, ids, promised }, signal) => {
  const file = `report-${number}.txt`
  ids.push((await mill.enqueue(collectReport, { file })).id)
  promised.push(pause(900, signal).then(() => writeFile(join(SPOOL, file), 'one\ntwo\nthree')))
}

const goodLedger: Step = async (mill, { number, ids }) => {
  const file = `ledger-${number}.csv`
  await writeFile(join(SPOOL, file), '2026-01-31,12.50\n2026-02-28,-3.25\n')
  // The key makes a second enqueue of the same ledger a duplicate.
  ids.push((await mill.enqueue(parseLedger, { file }, { key: file })).id)
}

const corruptLedger: Step = async (mill, { number, ids }) => {
  const file = `ledger-${number}-corrupt.csv`
  await writeFile(join(SPOOL, file), '2026-01-31,12.50\n2026-02-\u0000\u0000\n')
  ids.push((await mill.enqueue(parseLedger, { file })).id)
}

/** Three changes in a row: two of the three give way to the last. */
const indexBurst: Step = async (mill, { number, ids }) => {
  for (const change of [1, 2, 3]) {
    const options = { latest: 'search-index', delay: '400ms' } as const
    ids.push((await mill.enqueue(indexDocs, { revision: number * 10 + change }, options)).id)
  }
}

const laterTidy: Step = async (mill, { ids }) => {
  ids.push((await mill.enqueue(tidySpool, { olderThanMs: 60_000 }, { delay: '3s', latest: 'tidy' })).id)
}

/** Far too much work, cancelled while it runs. */
const cancelledCount: Step = async (mill, { ids, promised }, signal) => {
  const { id } = await mill.enqueue(countPrimes, { below: 4_000_000 })
  ids.push(id)
  promised.push(
    pause(2_500, signal)
      .then(() => mill.cancel(id, { who: 'tour', reason: 'too much work' }))
      .then(() => {}),
  )
}

const STEPS: readonly Step[] = [
  checksums,
  longCount,
  lateReport,
  goodLedger,
  corruptLedger,
  indexBurst,
  laterTidy,
  cancelledCount,
]
