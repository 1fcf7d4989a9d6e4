/**
 * The jobs of the tour. Each does a little real work; together they show everything that can happen to a job.
 * Run them in a second process with: npm run -s millrace -- work examples/tour/jobs.ts
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { glob, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { type AnyJob, defineJob, NonRetryable } from 'millrace'
import type { Engine } from 'millrace/engine'
import { z } from 'zod'

/** The repository: what the tour reads. */
export const ROOT = resolve(import.meta.dirname, '../..')
/** The tour's own files; they are removed again. */
export const SPOOL = resolve('.cache/tour')

/** Succeeds. */
export const checksum = defineJob({
  type: 'checksum',
  payload: z.object({ path: z.string() }),
  async run({ payload, signal }) {
    const hash = createHash('sha256')
    await pipeline(createReadStream(resolve(ROOT, payload.path)), hash, { signal })
    return { sha256: hash.digest('hex') }
  },
})

/** Fails until its file exists, then succeeds. */
export const collectReport = defineJob({
  type: 'collect-report',
  payload: z.object({ file: z.string() }),
  attempts: 6,
  backoff: { kind: 'exponential', base: '400ms', max: '5s' },
  async run({ payload }) {
    const text = await readFile(join(SPOOL, payload.file), 'utf8').catch((cause) => {
      throw new Error(`${payload.file} has not arrived yet`, { cause })
    })
    return { lines: text.split('\n').length }
  },
})

/** Dies at once on a corrupt file, because retrying cannot help. */
export const parseLedger = defineJob({
  type: 'parse-ledger',
  payload: z.object({ file: z.string() }),
  priority: 3,
  async run({ payload }) {
    const text = await readFile(join(SPOOL, payload.file), 'utf8')
    let cents = 0
    for (const [index, line] of text.trim().split('\n').entries()) {
      const amount = /^\d{4}-\d\d-\d\d,(-?\d+\.\d\d)$/.exec(line)?.[1]
      if (amount === undefined) throw new NonRetryable(`line ${index + 1} is not 'date,amount'`)
      cents += Math.round(Number(amount) * 100)
    }
    return { total: cents / 100 }
  },
})

const STEPS = 40

/** Takes a while, reports progress, and stops when its signal aborts. */
export const countPrimes = defineJob({
  type: 'count-primes',
  payload: z.object({ below: z.number().int().min(2) }),
  priority: 7,
  concurrency: 3,
  lease: '10s',
  async run({ payload, progress, signal }) {
    let primes = 0
    for (let step = 0; step < STEPS; step += 1) {
      const from = Math.floor((payload.below * step) / STEPS)
      primes += primesBetween(from, Math.floor((payload.below * (step + 1)) / STEPS))
      await progress({ percent: Math.round(((step + 1) / STEPS) * 100) })
      // A pause between steps, for small machines. The signal ends it at once.
      await sleep(80, undefined, { signal })
    }
    return { primes }
  },
})

function primesBetween(from: number, to: number): number {
  let primes = 0
  for (let candidate = Math.max(2, from); candidate < to; candidate += 1) {
    let divisor = 2
    while (divisor * divisor <= candidate && candidate % divisor !== 0) divisor += 1
    if (divisor * divisor > candidate) primes += 1
  }
  return primes
}

/** Enqueued with a latest key and a short delay: a burst of changes costs one run, and the newest wins. */
export const indexDocs = defineJob({
  type: 'index-docs',
  payload: z.object({ revision: z.string() }),
  priority: 4,
  async run({ payload }) {
    const filesByWord = new Map<string, Set<string>>()
    for await (const file of glob(['*.md', 'docs/**/*.md', 'src/**/*.ts'], { cwd: ROOT })) {
      const text = await readFile(join(ROOT, file), 'utf8')
      for (const [word] of text.toLowerCase().matchAll(/[a-z]{4,}/g)) {
        filesByWord.set(word, (filesByWord.get(word) ?? new Set()).add(file))
      }
    }
    await mkdir(SPOOL, { recursive: true })
    const index = Object.fromEntries([...filesByWord].map(([word, files]) => [word, [...files]]))
    await writeFile(join(SPOOL, 'index.json'), JSON.stringify({ revision: payload.revision, index }))
    return { words: filesByWord.size }
  },
})

/** Enqueued to run later, behind everything else. */
export const tidySpool = defineJob({
  type: 'tidy-spool',
  payload: z.object({ olderThanMs: z.number() }),
  priority: 9,
  async run({ payload }) {
    let removed = 0
    for (const name of await readdir(SPOOL)) {
      const file = join(SPOOL, name)
      const { mtimeMs } = await stat(file)
      if (name === 'index.json' || Date.now() - mtimeMs < payload.olderThanMs) continue
      await rm(file, { force: true })
      removed += 1
    }
    return { removed }
  },
})

const EUROS: Readonly<Record<string, number>> = { CHF: 1.05, EUR: 1, GBP: 1.15, USD: 0.86 }

/** Dies on an unknown currency: correct the payload on the dashboard, replay it, and it completes. */
export const convertPrice = defineJob({
  type: 'convert-price',
  payload: z.object({ article: z.string(), amount: z.number(), currency: z.string() }),
  run({ payload: { amount, currency } }) {
    const rate = EUROS[currency]
    if (rate === undefined) {
      throw new NonRetryable(`the currency '${currency}' is unknown; use one of ${Object.keys(EUROS).join(', ')}`)
    }
    return { euros: Math.round(amount * rate * 100) / 100 }
  },
})

/** Waits for checksums and receives their results. */
export const writeManifest = defineJob({
  type: 'write-manifest',
  payload: z.object({ name: z.string() }),
  async run({ payload, after }) {
    await mkdir(SPOOL, { recursive: true })
    const lines = after.map(({ id, result }) => `${id} ${z.object({ sha256: z.string() }).parse(result).sha256}`)
    await writeFile(join(SPOOL, payload.name), lines.join('\n'))
    return { entries: lines.length }
  },
})

/** Runs every minute, by cron. */
export const takeCensus = defineJob({
  type: 'take-census',
  schedule: '* * * * *',
  async run() {
    return { files: (await readdir(SPOOL).catch(() => [])).length }
  },
})

const TOUR_JOBS = [
  checksum,
  collectReport,
  parseLedger,
  countPrimes,
  indexDocs,
  tidySpool,
  convertPrice,
  writeManifest,
  takeCensus,
]

/** The jobs that an engine supports: not every engine has schedules. */
export function jobsFor({ records }: Pick<Engine, 'records'>): readonly AnyJob[] {
  return TOUR_JOBS.filter(({ schedule }) => schedule === null || records !== undefined)
}
