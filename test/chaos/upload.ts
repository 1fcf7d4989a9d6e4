/**
 * Worker processes that upload learnings to a real chain and are killed: at each step of an upload, then at random, while
 * the chain is reorganised now and then. `node test/chaos/upload.ts` does the full run; test/crash kills at each step only.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { privateKeyToAddress } from 'viem/accounts'
import { seededRandom } from '../../src/testing/open-for-test.ts'
import { systemClock } from '../../src/time/clock.ts'
import { MINE_UPLOAD } from '../../workloads/conversations/jobs/contract.ts'
import type { UploadSettings } from '../../workloads/conversations/options.ts'
import { inTransaction, openDatabase } from '../../workloads/conversations/store/database.ts'
import { enqueueJob } from '../../workloads/conversations/store/enqueue.ts'
import { UPLOAD_STEPS } from '../../workloads/conversations/upload/record-learning.ts'
import { addLearning, payloadFor, recordedEvents } from '../fixtures/upload-scene.ts'
import { ANVIL_CHAIN_ID, type Anvil, startAnvil } from '../servers/anvil.ts'
import { startBlockStore } from '../servers/block-store.ts'

const CHILD = fileURLToPath(new URL('./upload-worker.ts', import.meta.url))
const CONFIRMATIONS = 3
/** Less than the confirmations: what is confirmed stays. */
const REORG_DEPTH = 2
const BLOCK_MS = 100
const ATTEMPTS = 100
/** Longer than any step takes on a busy machine. */
const STEP_MS_MAX = 60_000

export interface UploadChaosOptions {
  readonly randomKills: number
  readonly seed: number
  /** How long the last worker may take. */
  readonly finishMs: number
}

export interface UploadChaosReport {
  readonly learnings: number
  readonly kills: number
  /** What the killed processes had done last, at the random kills. */
  readonly killedAfter: Readonly<Record<string, number>>
  readonly reorganisations: number
  readonly signed: number
  readonly seconds: number
  readonly violations: readonly string[]
}

class Stage {
  readonly anvil: Anvil
  readonly settings: UploadSettings
  readonly database: DatabaseSync
  readonly learnings: string[] = []
  readonly #file: string
  readonly #key: string
  readonly #children = new Set<ChildProcess>()
  readonly #steps = new Map<ChildProcess, string>()

  constructor(parts: { anvil: Anvil; settings: UploadSettings; file: string; key: string }) {
    this.anvil = parts.anvil
    this.settings = parts.settings
    this.#file = parts.file
    this.#key = parts.key
    this.database = openDatabase(parts.file, { nowMs: systemClock.nowMs() })
  }

  enqueue(): void {
    const id = addLearning({ database: this.database, clock: systemClock }, `Learning ${this.learnings.length}.`)
    const job = { type: MINE_UPLOAD, about: id, payload: payloadFor(id, this.settings) } as const
    inTransaction(this.database, () => {
      enqueueJob(this.database, job, systemClock.nowMs())
      // A killed run uses an attempt, and here one learning may meet many kills.
      this.database.exec(`UPDATE job_queue SET max_retries = ${ATTEMPTS}`)
    })
    this.learnings.push(id)
  }

  async hire(): Promise<ChildProcess> {
    const child = fork(CHILD, [this.#file, JSON.stringify(this.settings)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      env: { ...process.env, CHAOS_KEY: this.#key, NODE_COMPILE_CACHE: `${this.#file}.cache` },
    })
    this.#children.add(child)
    child.once('exit', () => this.#children.delete(child))
    child.on('message', (message) => this.#steps.set(child, String(Object(message).step)))
    await new Promise((resolve, reject) => {
      child.once('message', resolve)
      child.once('exit', (code) => reject(new Error(`a worker process ended with ${code}`)))
    })
    return child
  }

  lastStep(child: ChildProcess): string {
    return this.#steps.get(child) ?? 'ready'
  }

  /** Resolves at the first step of an upload, or when it has waited long enough for one. */
  async begun(child: ChildProcess): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    child.on('message', (message) => {
      if (UPLOAD_STEPS.some((step) => step === Object(message).step)) resolve()
    })
    await Promise.race([promise, sleep(5_000, undefined, { ref: false })])
  }

  unconfirmed(): number {
    const { count } =
      this.database.prepare(`SELECT count(*) AS count FROM uploads WHERE status = 'confirmed'`).get() ?? {}
    return this.learnings.length - Number(count)
  }

  killAll(): void {
    for (const child of this.#children) child.kill('SIGKILL')
  }
}

export async function runUploadChaos(options: UploadChaosOptions): Promise<UploadChaosReport> {
  const random = seededRandom(options.seed)
  const startedAtMs = performance.now()
  const folder = mkdtempSync(join(tmpdir(), 'millrace-upload-chaos-'))
  const [anvil, store] = await Promise.all([startAnvil(), startBlockStore()])
  const key = `0x${randomBytes(32).toString('hex')}` as const
  await anvil.call('anvil_setBalance', [privateKeyToAddress(key), '0x56bc75e2d63100000'])
  const settings: UploadSettings = {
    ipfsEndpoint: store.url,
    rpcUrl: anvil.url,
    chainId: ANVIL_CHAIN_ID,
    contractAddress: await anvil.deployRegistry(),
    privateKeyRef: 'env:CHAOS_KEY',
    confirmations: CONFIRMATIONS,
    poll: '100ms',
  }
  const stage = new Stage({ anvil, settings, file: join(folder, 'conversations.db'), key })
  const chain = runChain(anvil, options.randomKills > 0 ? random : null)
  try {
    await killAtEachStep(stage)
    const killedAfter = await killAtRandom(stage, options.randomKills, random)
    await finish(stage, options.finishMs)
    const reorganisations = await chain.stop()
    return {
      learnings: stage.learnings.length,
      kills: UPLOAD_STEPS.length + options.randomKills,
      killedAfter,
      reorganisations,
      signed: Number(stage.database.prepare('SELECT count(*) AS count FROM upload_transactions').get()?.count),
      seconds: Math.round((performance.now() - startedAtMs) / 1_000),
      violations: await judge(stage),
    }
  } finally {
    stage.killAll()
    await chain.stop()
    await Promise.all([anvil.stop(), store.stop()])
    stage.database.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A block every 100 ms; with `random`, one in sixty is the first of a reorganisation. */
function runChain(anvil: Anvil, random: (() => number) | null): { stop(): Promise<number> } {
  let isOver = false
  let reorganisations = 0
  const running = (async () => {
    while (!isOver) {
      await anvil.mine(1)
      if (random !== null && random() < 1 / 60) {
        reorganisations += 1
        await anvil.call('anvil_reorg', [REORG_DEPTH, []])
      }
      await sleep(BLOCK_MS)
    }
  })()
  return {
    async stop() {
      isOver = true
      await running
      return reorganisations
    },
  }
}

/** One process after the other, each killed at its step, with a fresh learning for each. */
async function killAtEachStep(stage: Stage): Promise<void> {
  // The first one fills the cache from which the others start twice as fast.
  const children = [await stage.hire(), ...(await Promise.all(UPLOAD_STEPS.slice(1).map(() => stage.hire())))]
  for (const [index, killAt] of UPLOAD_STEPS.entries()) {
    const child = children[index]
    if (child === undefined) throw new Error(`no process for ${killAt}`)
    const exited = new Promise((resolve) => child.once('exit', (_code, signal) => resolve(signal)))
    stage.enqueue()
    child.send({ killAt })
    const end = await Promise.race([exited, sleep(STEP_MS_MAX, 'nothing', { ref: false })])
    if (end !== 'SIGKILL') throw new Error(`the process that should be killed at ${killAt} ended with ${end}`)
  }
}

async function killAtRandom(stage: Stage, kills: number, random: () => number): Promise<Record<string, number>> {
  const killedAfter: Record<string, number> = {}
  let left = kills
  const killer = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      const child = await stage.hire()
      stage.enqueue()
      stage.enqueue()
      const exited = new Promise((resolve) => child.once('exit', resolve))
      const begun = stage.begun(child)
      child.send({ killAt: null })
      // In the middle of its work: on a busy machine a fixed time would often be over before that.
      await begun
      await sleep(random() * 600)
      const step = stage.lastStep(child)
      killedAfter[step] = (killedAfter[step] ?? 0) + 1
      child.kill('SIGKILL')
      await exited
    }
  }
  await Promise.all([killer(), killer(), killer()])
  return killedAfter
}

async function finish(stage: Stage, finishMs: number): Promise<void> {
  const child = await stage.hire()
  child.send({ killAt: null })
  for (const untilMs = performance.now() + finishMs; performance.now() < untilMs; await sleep(50)) {
    if (stage.unconfirmed() === 0) break
  }
  const exited = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await exited
}

async function judge({ anvil, settings, database, learnings }: Stage): Promise<readonly string[]> {
  const violations: string[] = []
  for (const id of learnings) {
    const events = await recordedEvents(anvil, settings.contractAddress, id)
    if (events.length !== 1) violations.push(`${id} has ${events.length} records on the chain`)
    const rows = database.prepare('SELECT * FROM uploads WHERE learning_id = ?').all(id)
    if (rows.length !== 1 || rows[0]?.status !== 'confirmed')
      violations.push(`${id} is ${rows[0]?.status ?? 'unknown'}`)
    const hash = Object(events[0]).transactionHash
    if (rows[0]?.chain_tx_hash !== hash) violations.push(`${id} names ${rows[0]?.chain_tx_hash}, recorded by ${hash}`)
  }
  return violations
}

if (import.meta.main) {
  // The chain ends with this process, however that is stopped.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  const seed = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 31))
  console.log(`seed ${seed}`)
  const report = await runUploadChaos({ randomKills: 50, seed, finishMs: 120_000 })
  console.log(JSON.stringify(report, null, 2))
  process.exitCode = report.violations.length === 0 ? 0 : 1
}
