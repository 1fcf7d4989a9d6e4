import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMillraceError, type Mill } from 'millrace'
import {
  checksum,
  collectReport,
  convertPrice,
  countPrimes,
  indexDocs,
  parseLedger,
  SPOOL,
  tidySpool,
  writeManifest,
} from './jobs.ts'

/** The pause between two steps of a round. */
const PAUSE_MS = 700

/** Enough to practise on, not so many that the tour looks broken. */
const DEAD_MAX = 10

const CHECKSUM_PATHS = ['package.json', 'src/errors.ts', 'src/client/mill.ts', 'src/engine/engine.ts', 'tsconfig.json']

/** What a round has started: ids to wait for, and files that will appear later. */
interface Round {
  /** In the names of this round's files; new ones after a restart. */
  readonly tag: string
  readonly ids: string[]
  readonly promised: Promise<void>[]
}

/** Does not throw when it is aborted. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {})
}

/** One of everything, at a gentle rate, until the signal aborts. Returns what it enqueued. */
async function feedRound(mill: Mill, signal: AbortSignal): Promise<Round> {
  await mkdir(SPOOL, { recursive: true })
  const round: Round = { tag: Math.floor(Date.now() / 1_000).toString(36), ids: [], promised: [] }
  for (const step of STEPS) {
    if (signal.aborted) break
    await step(mill, round, signal).catch(unlessUnsupported)
    await pause(PAUSE_MS, signal)
  }
  return round
}

/** The tour leaves out what the engine does not support. */
function unlessUnsupported(error: unknown): void {
  if (!isMillraceError(error, 'ERR_UNSUPPORTED')) throw error
}

/** Endless rounds until the signal aborts. Files that jobs wait for still appear after that. */
export async function feedForever(mill: Mill, signal: AbortSignal): Promise<void> {
  let promised: readonly Promise<void>[] = []
  while (!signal.aborted) {
    const round = await feedRound(mill, signal)
    await Promise.all(promised)
    promised = round.promised
  }
  await Promise.all(promised)
}

/** One round, until all its jobs have ended. */
export async function feedOnce(mill: Mill, signal: AbortSignal): Promise<void> {
  const { ids, promised } = await feedRound(mill, signal)
  await Promise.all(promised)
  await Promise.all(ids.map((id) => mill.engine.inspector?.waitFor(id, { waitMs: 60_000, signal })))
}

async function wantsMoreDead(mill: Mill, type: string): Promise<boolean> {
  return ((await mill.counts())[type]?.dead ?? 0) < DEAD_MAX
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

/** The report appears shortly after the job that reads it. */
const lateReport: Step = async (mill, { tag, ids, promised }, signal) => {
  const file = `report-${tag}.txt`
  ids.push((await mill.enqueue(collectReport, { file })).id)
  promised.push(pause(900, signal).then(() => writeFile(join(SPOOL, file), 'one\ntwo\nthree')))
}

const goodLedger: Step = async (mill, { tag, ids }) => {
  const file = `ledger-${tag}.csv`
  await writeFile(join(SPOOL, file), '2026-01-31,12.50\n2026-02-28,-3.25\n')
  // The key makes a second enqueue of the same ledger a duplicate.
  ids.push((await mill.enqueue(parseLedger, { file }, { key: file })).id)
}

const corruptLedger: Step = async (mill, { tag, ids }) => {
  if (!(await wantsMoreDead(mill, parseLedger.type))) return
  const file = `ledger-${tag}-corrupt.csv`
  await writeFile(join(SPOOL, file), '2026-01-31,12.50\n2026-02-\u0000\u0000\n')
  ids.push((await mill.enqueue(parseLedger, { file })).id)
}

/** Three changes in a row: the last one replaces the others. */
const indexBurst: Step = async (mill, { tag, ids }) => {
  for (const change of [1, 2, 3]) {
    const options = { latest: 'search-index', delay: '400ms' } as const
    ids.push((await mill.enqueue(indexDocs, { revision: `${tag}.${change}` }, options)).id)
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

/** One of the three has an unknown currency, unless ten such dead letters are waiting already. */
const prices: Step = async (mill, { ids }) => {
  const isWrong = await wantsMoreDead(mill, convertPrice.type)
  const payloads = [
    { article: 'flour', amount: 2.4, currency: 'EUR' },
    { article: 'oats', amount: 3.1, currency: 'GBP' },
    { article: 'rye', amount: 1.9, currency: isWrong ? 'EURO' : 'CHF' },
  ]
  for (const { id } of await mill.enqueueMany(convertPrice, payloads)) ids.push(id)
}

/** Two checksums, and a manifest that waits for both. */
const manifest: Step = async (mill, { tag, ids }) => {
  const flow = await mill.enqueueFlow({
    readme: { job: checksum, payload: { path: 'README.md' } },
    license: { job: checksum, payload: { path: 'LICENSE' } },
    manifest: { job: writeManifest, payload: { name: `manifest-${tag}.txt` }, after: ['readme', 'license'] },
  })
  for (const { id } of Object.values(flow)) ids.push(id)
}

const STEPS: readonly Step[] = [
  checksums,
  prices,
  longCount,
  lateReport,
  goodLedger,
  corruptLedger,
  indexBurst,
  manifest,
  laterTidy,
  cancelledCount,
]
