/**
 * The conversation pipeline from end to end, `npm run demo:conversations`: a chain, a block store, the real hook and the real
 * worker. It ends with 0 only if everything that it prints was found to be true.
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { StopRequest } from '../../../src/cli/stop-signals.ts'
import { systemClock } from '../../../src/time/clock.ts'
import { ANVIL_CHAIN_ID, type Anvil, anvilMissing, startAnvil } from '../../../test/servers/anvil.ts'
import { type BlockStore, startBlockStore } from '../../../test/servers/block-store.ts'
import { buildHook } from '../../hook.ts'
import { runDemonstration } from '../demonstration.ts'
import { check, cut, heading, short, step, table, terminal } from '../progress.ts'
import { type Pipeline, type Place, runHook, startPipeline } from './pipeline.ts'
import { PROMPTS, rawStrings } from './prompts.ts'
import { type Learnt, type Stored, StoreReader } from './store.ts'
import { leaks, verifyUpload } from './verify.ts'

const KEY_NAME = 'MILLRACE_DEMO_KEY'
const CONFIRMATIONS = 2
/** Everything is done within a few seconds; a slow machine gets more. */
const PATIENCE_MS = 300_000
const LOOK_MS = 150

interface Publishing {
  readonly anvil: Anvil
  readonly store: BlockStore
  readonly contract: string
  readonly key: string
}

async function startPublishing(ends: AsyncDisposableStack): Promise<Publishing | null> {
  if (anvilMissing !== false) {
    step('chain', `none: ${anvilMissing}. The rest runs without uploads`)
    return null
  }
  const anvil = await startAnvil({ args: ['--block-time', '1'] })
  ends.defer(() => anvil.stop())
  step('chain', `anvil at ${anvil.url}, chain ${ANVIL_CHAIN_ID}, a block each second`)
  const store = await startBlockStore()
  ends.defer(() => store.stop())
  step('store', `content-addressed blocks at ${store.url}`)
  const contract = await anvil.deployRegistry()
  step('contract', `LearningRegistry deployed at ${contract}`)
  // An account of its own; the pipeline learns only the name of the variable with its key.
  const key = `0x${randomBytes(32).toString('hex')}` as const
  const { privateKeyToAccount } = await import('viem/accounts')
  await anvil.call('anvil_setBalance', [privateKeyToAccount(key).address, '0x56bc75e2d63100000'])
  return { anvil, store, contract, key }
}

function configOf(publishing: Publishing | null): object {
  if (publishing === null) return {}
  const { anvil, store, contract } = publishing
  return {
    upload: {
      ...{ ipfsEndpoint: store.url, rpcUrl: anvil.url, chainId: ANVIL_CHAIN_ID, contractAddress: contract },
      ...{ privateKeyRef: `env:${KEY_NAME}`, confirmations: CONFIRMATIONS, poll: '500ms' },
    },
  }
}

async function sendPrompts(place: Place, reader: StoreReader, signal: AbortSignal): Promise<void> {
  for (const [index, { session, text }] of PROMPTS.entries()) {
    if (signal.aborted) return
    const input = { hook_event_name: 'UserPromptSubmit', session_id: session, prompt: text }
    const tookMs = await runHook(place, input)
    const told = `${index + 1} of ${PROMPTS.length} through the hook in ${tookMs.toFixed(0)} ms`
    step('prompt', `${told}; replaced: ${reader.replaced()}`)
  }
}

/** Prints what changes, until every prompt has been sent and nothing is left to do. */
async function watch(reader: StoreReader, sending: Promise<void>, signal: AbortSignal): Promise<Stored> {
  const untilMs = systemClock.monotonicMs() + PATIENCE_MS
  const shown = new Map<string, string>()
  let validated = 0
  for (;;) {
    const now = reader.read()
    if (now.validated !== validated) {
      validated = now.validated
      step('validated', `${now.validated} of ${now.messages} messages; found beyond the rules: ${now.foundByModel}`)
    }
    for (const learnt of now.learnt) {
      const state = learnt.status ?? 'learnt'
      if (shown.get(learnt.id) !== state) tell(learnt, shown.get(learnt.id))
      shown.set(learnt.id, state)
    }
    if (signal.aborted || (now.messages >= PROMPTS.length && now.unfinished === 0)) return now
    if (systemClock.monotonicMs() > untilMs) throw new Error(`${now.unfinished} jobs were not finished in time`)
    // The prompts are sent meanwhile; if that fails, nothing is left to wait for.
    await Promise.race([systemClock.sleep(LOOK_MS, signal), sending.then(() => systemClock.sleep(LOOK_MS, signal))])
  }
}

function tell({ category, title, status, ipfs_cid, chain_tx_hash }: Learnt, before: string | undefined): void {
  if (before === undefined) step('learnt', `${category}: ${cut(title, 80)}`)
  if (status === 'ipfs_uploaded') step('stored', `${ipfs_cid}`)
  if (status === 'tx_submitted') step('sent', `${chain_tx_hash}`)
  if (status === 'confirmed') step('confirmed', `${chain_tx_hash}`)
}

async function verify(stored: Stored, publishing: Publishing | null, traces: readonly string[]): Promise<boolean> {
  heading('What was learnt')
  const uploads = await Promise.all(
    stored.learnt.map(async (one) => ({ one, verified: publishing && (await verifyUpload(one, publishing)) })),
  )
  table(
    ['LEARNING', 'CATEGORY', 'CONFIDENCE', 'CONTENT ID', 'TRANSACTION', 'CONFIRMATIONS'],
    uploads.map(({ one, verified }) => [
      ...[cut(one.title, 60), one.category, one.confidence.toFixed(2), short(one.ipfs_cid)],
      ...[short(one.chain_tx_hash), verified === null ? '-' : String(verified.confirmations)],
    ]),
  )
  heading('Is it true?')
  const all = stored.learnt.length
  const raw = rawStrings()
  const answers = [
    check(stored.messages === PROMPTS.length, `${stored.messages} of ${PROMPTS.length} prompts are stored`),
    check(stored.validated === stored.messages, `${stored.validated} are validated`),
    check(all > 0, `${all} learnings were found in them`),
    check(stored.dead === 0, stored.dead === 0 ? 'no job is dead' : `${stored.dead} jobs are dead`),
    check(
      traces.length === 0,
      `${raw.length - traces.length} of ${raw.length} raw strings (mail addresses, keys, tokens…) are neither in a file (database, WAL, spool, logs) nor published`,
    ),
  ]
  if (publishing === null) return answers.every(Boolean)
  const count = (of: 'isStored' | 'isRecorded'): number => uploads.filter(({ verified }) => verified?.[of]).length
  const confirmed = uploads.filter(({ verified }) => (verified?.confirmations ?? 0) >= CONFIRMATIONS).length
  answers.push(
    check(count('isStored') === all, `${count('isStored')} are in the block store, and hash to their content ids`),
    check(count('isRecorded') === all, `${count('isRecorded')} are recorded on the chain, each once`),
    check(confirmed === all, `${confirmed} have ${CONFIRMATIONS} confirmations or more`),
  )
  return answers.every(Boolean)
}

async function demonstrate(stop: StopRequest, keep: boolean): Promise<boolean> {
  await using ends = new AsyncDisposableStack()
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-demo-'))
  ends.defer(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  const publishing = await startPublishing(ends)
  const hook = await buildHook(path.join(folder, 'millrace-hook.cjs'))
  step('hook', `built: one file of ${(statSync(hook).size / 1_024).toFixed(0)} kB`)
  const file = path.join(folder, 'conversations.db')
  const place: Place = { engine: `sqlite:${file}`, home: folder, hook }
  const config = path.join(folder, 'conversations.json')
  writeFileSync(config, JSON.stringify(configOf(publishing), null, 2))
  const pipeline = await startPipeline(place, config, { [KEY_NAME]: publishing?.key ?? '' })
  ends.defer(() => pipeline.stop())
  step('pipeline', `worker, keeper and dashboard at ${pipeline.dashboard}`)
  const reader = new StoreReader(file)
  ends.defer(() => reader.close())
  if (stop.signal.aborted) return false
  const sending = sendPrompts(place, reader, stop.signal)
  const watching = watch(reader, sending, stop.signal)
  // Whichever fails first is reported; the other may fail because of it.
  for (const one of [sending, watching]) one.catch(() => {})
  const stored = await Promise.race([watching, pipeline.failed])
  if (stop.signal.aborted) return false
  const published = [...(publishing?.store.blocks.values() ?? [])].map(String)
  const isTrue = await verify(stored, publishing, leaks(folder, [...pipeline.lines, ...published], rawStrings()))
  if (keep) await stay(stop, pipeline, place)
  return isTrue
}

async function stay(stop: StopRequest, pipeline: Pipeline, { engine }: Place): Promise<void> {
  heading('It stays until Ctrl-C')
  terminal.print(`dashboard  ${pipeline.dashboard}`)
  terminal.print(`commands   npm run millrace -- conversations list --engine ${engine}`)
  await stop.unlessStopped(pipeline.failed)
}

await runDemonstration('demo:conversations', 'the dashboard, the chain and the files', demonstrate)
