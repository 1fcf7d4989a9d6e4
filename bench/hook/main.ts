/**
 * What the hook costs: npm run bench:hook [-- --runs N --rounds N --hook FILE --enforce]
 *
 * Whole processes of the packed package, in turns with `node -e 0` of the same Node, so that both meet the same load. `--hook`
 * measures a built file instead of packing first.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { parseArgs } from 'node:util'
import { stagePackage } from '../../scripts/package.ts'
import { sanitizeMessage, writeMessage } from '../../workloads/conversations/hook/capture.ts'
import { SANITIZE_AI_VALIDATION } from '../../workloads/conversations/jobs/contract.ts'
import { createSanitizer } from '../../workloads/conversations/sanitize/sanitize.ts'
import { inTransaction, openDatabase } from '../../workloads/conversations/store/database.ts'
import { enqueueJob } from '../../workloads/conversations/store/enqueue.ts'
import { machineFacts } from '../machine.ts'
import { DOCS_DIR, RESULTS_DIR, writeDocs } from '../report/files.ts'
import { HOOK_RESULTS, type HookFigure, type HookResult } from '../report/hook.ts'
import { percentile } from '../statistics.ts'

const AT_ONCE = 20

/** Prompts as people write them: with a path, an error, a mail address, a few lines of code. */
const PROMPTS: readonly string[] = [
  'Please fix the login page: ann@example.com cannot sign in since the last release. The test in src/login.test.ts fails.',
  'Why does `npm test` hang after the last test? It never exits, also with --test-force-exit. Nothing is printed.',
  'TypeError: Cannot read properties of undefined (reading "id")\n    at load (/home/ann/shop/src/cart.ts:42:17)\n    at main.ts:7:3',
  'Rename `total` to `sum` in this function and add a test:\nexport function total(a: number[]) {\n  return a.reduce((x, y) => x + y, 0)\n}',
  'Our server at 10.1.2.3 refuses connections from the worker. What should I check first?',
]

type Figure = HookFigure

/** Milliseconds from start to exit. */
function run(args: readonly string[], input: string, env: Readonly<Record<string, string>> = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const startedMs = performance.now()
    const child = spawn(process.execPath, args, {
      env: { PATH: process.env.PATH ?? '', ...env },
      stdio: ['pipe', 'ignore', 'pipe'],
    })
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
    child.stdin.on('error', () => {})
    child.once('error', reject)
    child.once('exit', (code) => {
      const tookMs = performance.now() - startedMs
      if (code === 0 && said === '') resolve(tookMs)
      else reject(new Error(`it ended with ${code}: ${said}`))
    })
    child.stdin.end(input)
  })
}

const inputOf = (index: number): string =>
  JSON.stringify({
    hook_event_name: 'UserPromptSubmit',
    session_id: '0f8e7c1a-1111-4222-8333-944445555666',
    prompt: PROMPTS[index % PROMPTS.length],
  })

const atMost = (what: string, value: number, unit: Figure['unit'], target?: number): Figure =>
  target === undefined ? { what, value, unit } : { what, value, unit, target, isMet: value <= target }

async function processes(hook: string, folder: string, rounds: number): Promise<readonly Figure[]> {
  const env = { HOME: folder, MILLRACE_ENGINE: `sqlite:${join(folder, 'turns.db')}` }
  const [empty, hooks]: [number[], number[]] = [[], []]
  // The first round creates the file and fills the caches of the disk.
  for (let round = -1; round < rounds; round += 1) {
    const emptyMs = await run(['-e', '0'], inputOf(round + 1))
    const hookMs = await run([hook], inputOf(round + 1), env)
    if (round < 0) continue
    empty.push(emptyMs)
    hooks.push(hookMs)
  }
  const ratio = percentile(hooks, 50) / percentile(empty, 50)
  return [
    atMost('node -e 0, p50', percentile(empty, 50), 'ms'),
    atMost('node -e 0, p95', percentile(empty, 95), 'ms'),
    atMost('the hook, p50', percentile(hooks, 50), 'ms'),
    atMost('the hook, p95', percentile(hooks, 95), 'ms', 100),
    atMost('the hook, p50, against node -e 0', ratio, 'times', 1.25),
  ]
}

async function atOnce(hook: string, folder: string): Promise<Figure> {
  const file = join(folder, 'at-once.db')
  const env = { HOME: folder, MILLRACE_ENGINE: `sqlite:${file}` }
  const runs = Array.from({ length: AT_ONCE }, (_, index) => run([hook], inputOf(index), env))
  await Promise.allSettled(runs)
  const database = new DatabaseSync(file)
  const stored = Number(database.prepare('SELECT count(*) AS count FROM messages').get()?.count ?? 0)
  database.close()
  return {
    what: `of ${AT_ONCE} hooks at once, stored`,
    value: stored,
    unit: 'hooks',
    target: AT_ONCE,
    isMet: stored === AT_ONCE,
  }
}

function timed(rounds: number, act: (round: number) => void): readonly number[] {
  return Array.from({ length: rounds }, (_, round) => {
    const startedMs = performance.now()
    act(round)
    return performance.now() - startedMs
  })
}

/** In this process: what the steps cost by themselves. */
function steps(folder: string, rounds: number): readonly Figure[] {
  const sanitize = createSanitizer()
  const text = Array.from({ length: 100 }, (_, index) => `${index} ${PROMPTS[index % PROMPTS.length]}\n`).join('')
  const long = (round: number): string => `${round} ${text}`.slice(0, 10_000)
  const sanitising = timed(rounds, (round) => void sanitize(long(round)))
  const database = openDatabase(join(folder, 'steps.db'), { nowMs: Date.now() })
  const conversation = (round: number): string => `01K5XJ7Q2M4R8T0V6W9Y${String(round).padStart(6, '0')}`
  const messages = Array.from({ length: rounds }, (_, round) =>
    sanitizeMessage(
      { event: '', conversationId: conversation(round), role: 'user', content: PROMPTS[round % PROMPTS.length] ?? '' },
      { sanitize, secret: () => new Uint8Array(32), nowMs: Date.now() },
    ),
  )
  const writing = timed(rounds, (round) => {
    const message = messages[round]
    if (message !== undefined) inTransaction(database, () => writeMessage(database, message, Date.now()))
  })
  const enqueueing = timed(rounds, (round) =>
    inTransaction(database, () => {
      const payload = { conversation_id: conversation(round), message_ids: [], sanitization_version: '1' }
      enqueueJob(database, { type: SANITIZE_AI_VALIDATION, about: conversation(500_000 + round), payload }, Date.now())
    }),
  )
  database.close()
  return [
    atMost('sanitising 10 kB, p95', percentile(sanitising, 95), 'ms', 50),
    atMost('the write with synchronous=full, p95', percentile(writing, 95), 'ms', 20),
    atMost('the enqueue with its key looked up, p95', percentile(enqueueing, 95), 'ms', 10),
  ]
}

const rounded = (value: number): number => Math.round(value * 100) / 100

/** Every figure once: that of the run in the middle, of hooks at once that of the worst run, with the values of all runs. */
function together(runs: readonly (readonly Figure[])[]): readonly HookFigure[] {
  const [first = []] = runs
  return first.map((figure, index) => {
    const all = runs.map((run) => run[index] ?? figure)
    const sorted = all.toSorted((one, other) => one.value - other.value)
    const chosen = sorted[figure.unit === 'hooks' ? 0 : Math.floor(all.length / 2)] ?? figure
    return { ...chosen, value: rounded(chosen.value), runs: all.map(({ value }) => rounded(value)) }
  })
}

async function measure(hook: string, rounds: number): Promise<readonly Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-hook-'))
  try {
    return [...(await processes(hook, folder, rounds)), await atOnce(hook, folder), ...steps(folder, rounds)]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const { values } = parseArgs({
  options: {
    rounds: { type: 'string' },
    runs: { type: 'string' },
    hook: { type: 'string' },
    enforce: { type: 'boolean' },
  },
})
const rounds = Number(values.rounds ?? 200)
const machine = machineFacts({})
const hook = values.hook ?? join(await stagePackage(), 'dist/bin/millrace-hook.cjs')
const runs: (readonly Figure[])[] = []
for (let run = 0; run < Number(values.runs ?? 3); run += 1) runs.push(await measure(hook, rounds))
const figures = together(runs)
console.table(figures.map(({ runs, ...figure }) => ({ ...figure, runs: runs?.join(', ') })))
if (values.rounds === undefined) {
  const result: HookResult = { date: new Date().toISOString().slice(0, 10), rounds, machine, figures }
  writeFileSync(join(RESULTS_DIR, HOOK_RESULTS), `${JSON.stringify(result, null, 2)}\n`)
  await writeDocs(RESULTS_DIR, DOCS_DIR)
}
const missed = figures.filter(({ isMet }) => isMet === false)
for (const { what, value, target } of missed) console.log(`missed: ${what}: ${value}, target ${target}`)
process.exitCode = values.enforce === true && missed.length > 0 ? 1 : 0
