import { NonRetryable, Postpone } from '../../../src/errors.ts'
import type { JobContext } from '../../../src/job/definition.ts'
import type { Clock } from '../../../src/time/clock.ts'
import { type Chain, type Hex, type RecordedEntry, recordId, type SendResult } from './chain.ts'
import { isPublishable } from './document.ts'
import { openSigner, parseCall, raiseFees, type Signer } from './signing.ts'
import type { StoredTransaction, UploadStore } from './upload-store.ts'

/** The moments between which a crash must be harmless. Tests stop the process at each of them. */
export const UPLOAD_STEPS = [
  'ipfs-added',
  'ipfs-stored',
  'signed',
  'transaction-stored',
  'transaction-sent',
  'submission-stored',
  'depth-reached',
  'confirmation-stored',
] as const
export type UploadStep = (typeof UPLOAD_STEPS)[number]

export interface RecordWork {
  readonly learningId: string
  readonly cid: string
  readonly chain: Chain
  readonly store: UploadStore
  readonly clock: Clock
  readonly context: Pick<JobContext<unknown>, 'log' | 'progress'>
  readonly privateKeyRef: string
  readonly confirmations: number
  readonly pollMs: number
  readonly bumpAfterMs: number
  /** Throws when the learning may not be published any more. Called before anything is sent. */
  assertPublishable(learningId: string): void
  onStep(step: UploadStep): void | Promise<void>
}

export interface RecordedUpload {
  readonly status: 'confirmed'
  readonly ipfs_cid: string
  readonly chain_tx_hash: string
  readonly confirmations: number
}

/** Each pass looks at the chain again. Two are usual: send, then wait. */
const PASSES_MAX = 6
const BUMPS_MAX = 10
/** Each costs fees, and something is wrong that another one does not change. */
const FAILED_MAX = 3
const FUNDS_WAIT = '5m'

/**
 * Brings the record of a learning onto the chain, once, and returns when it is deep enough. While it waits it throws
 * `Postpone`, so neither an attempt nor a slot is held. It can be stopped anywhere: what decides is the chain, and the
 * transactions that were stored before they were sent.
 */
export async function recordLearning(work: RecordWork): Promise<RecordedUpload> {
  const { chain, store, learningId } = work
  const id = recordId(learningId)
  for (let pass = 0; pass < PASSES_MAX; pass += 1) {
    const entry = await chain.recordOf(id)
    if (entry !== null) return confirm(work, id, entry)
    const signed = store.transactionsOf(learningId)
    const live = await newestLive(work, signed)
    if (live !== null) await push(work, live, signed)
    else if (await mayTakeNonce(work, id, signed)) await signFirst(work, id, signed.length)
  }
  throw new Postpone(work.pollMs, 'the transaction is on its way')
}

/** The record is on the chain, by whichever transaction. Nothing is ever sent from here. */
async function confirm(work: RecordWork, id: Hex, entry: RecordedEntry): Promise<RecordedUpload> {
  const { chain, store, learningId, cid, confirmations } = work
  if (entry.cid !== cid) {
    throw new NonRetryable(`the chain has a record of learning ${learningId} with another content id; nothing was sent`)
  }
  const event = await chain.recordEvent(id, entry)
  if (event === null) throw new Postpone(work.pollMs, 'the chain is being reorganised')
  store.record(learningId, { status: 'tx_submitted', cid, txHash: event.txHash })
  // Read after the event and before its block is compared: a head of before a reorganisation would overstate the depth.
  const depth = Math.max(0, (await chain.head()) - event.blockNumber)
  const seen = { ipfs_cid: cid, chain_tx_hash: event.txHash, confirmations: depth }
  await work.context.progress({ status: 'tx_submitted', ...seen })
  if (depth < confirmations) throw new Postpone(work.pollMs, `${depth} of ${confirmations} confirmations`)
  if ((await chain.blockHash(event.blockNumber)) !== event.blockHash) {
    throw new Postpone(work.pollMs, 'the chain was reorganised')
  }
  await work.onStep('depth-reached')
  store.record(learningId, { status: 'confirmed', cid, txHash: event.txHash })
  await work.onStep('confirmation-stored')
  return { status: 'confirmed', ...seen }
}

/** The newest transaction whose nonce is not used yet: it can still be mined. */
async function newestLive(
  { chain }: RecordWork,
  signed: readonly StoredTransaction[],
): Promise<StoredTransaction | null> {
  for (const one of signed.toReversed()) {
    if ((await chain.transactionCount(one.sender, 'latest')) <= one.nonce) return one
  }
  return null
}

/**
 * A new nonce is taken only when nothing that was signed for the learning can be mined any more: each nonce is used by
 * another transaction, so deep that no reorganisation brings it back.
 */
async function mayTakeNonce(work: RecordWork, id: Hex, signed: readonly StoredTransaction[]): Promise<boolean> {
  const { chain, confirmations, pollMs, store, learningId } = work
  if (signed.length === 0) return nothingIsUnderway(work, store.upload(learningId)?.chain_tx_hash ?? null)
  const deep = Math.max(0, (await chain.head()) - confirmations)
  // Asked for a block: nodes behind one address differ, and one that is behind answers as if there were no record.
  if ((await chain.recordOf(id, deep)) !== null) throw new Postpone(pollMs, 'the transaction was mined just now')
  let failed = 0
  for (const { tx_hash } of signed) {
    const receipt = await chain.receipt(tx_hash)
    if (receipt?.succeeded === false) failed += 1
    if (failed === FAILED_MAX) throw tooManyFailed(learningId, tx_hash)
    if (receipt?.succeeded !== true) continue
    if (receipt.blockNumber > deep) throw new Postpone(pollMs, 'the transaction was mined just now')
    throw new NonRetryable(`transaction ${tx_hash} succeeded and recorded nothing; is ${chain.contract} the registry?`)
  }
  for (const { sender, nonce } of signed) {
    if ((await chain.transactionCount(sender, deep)) > nonce) continue
    throw new Postpone(pollMs, `nonce ${nonce} was used by another transaction; waiting until that is final`)
  }
  const fields = { learning_id: learningId, nonces: [...new Set(signed.map(({ nonce }) => nonce))] }
  work.context.log.warn('Another transaction used the nonce of an upload; a new one is signed', fields)
  return true
}

function tooManyFailed(id: string, hash: string): NonRetryable {
  const advice = 'remove its rows of upload_transactions once the cause is gone, and replay the job'
  return new NonRetryable(`${FAILED_MAX} transactions of learning ${id} failed, the last is ${hash}; ${advice}`)
}

/** A row can name a transaction whose bytes are not here, such as after a restore. It may still be mined. */
async function nothingIsUnderway({ chain, pollMs }: RecordWork, hash: string | null): Promise<boolean> {
  // One that is mined made no record in this contract, or it would have been found.
  if (hash === null || !(await chain.knows(hash)) || (await chain.receipt(hash)) !== null) return true
  throw new Postpone(pollMs, 'the transaction is not mined yet')
}

async function signFirst(work: RecordWork, id: Hex, seen: number): Promise<void> {
  const { chain, store, learningId, cid } = work
  work.assertPublishable(learningId)
  const signer = await openSigner(work.privateKeyRef, chain, work.context.log)
  const data = chain.recordCall(id, cid)
  const estimate = await chain.estimateRecord(signer.address, data)
  // Another worker was faster; the next pass finds its record.
  if (estimate === 'already-recorded') return
  if (estimate === 'no-funds') throw outOfFunds(work, signer.address)
  const gas = (estimate * 12n) / 10n
  const fees = await chain.fees()
  if ((await chain.balance(signer.address)) < gas * fees.maxFeePerGas) throw outOfFunds(work, signer.address)
  const pending = await chain.transactionCount(signer.address, 'pending')
  // What is stored here counts too: another worker may have stored a transaction and not sent it yet.
  const nonce = Math.max(pending, store.nextNonce(signer.address))
  const transaction = await signer.sign({ nonce, to: chain.contract, data, gas, fees })
  await work.onStep('signed')
  if (!keep(work, signer, { nonce, ...transaction }, { seen, nonceIsNew: true })) return
  await work.onStep('transaction-stored')
  await send(work, transaction)
}

function keep(
  { store, learningId, chain, assertPublishable }: RecordWork,
  { address }: Signer,
  { hash, raw, nonce }: { readonly hash: string; readonly raw: Hex; readonly nonce: number },
  race: { readonly seen: number; readonly nonceIsNew: boolean },
): boolean {
  const genesis_hash = chain.genesis
  return store.insert(
    { tx_hash: hash, learning_id: learningId, genesis_hash, sender: address, nonce, raw },
    { ...race, check: () => assertPublishable(learningId) },
  )
}

function outOfFunds({ context, learningId }: RecordWork, sender: string | null): Postpone {
  context.log.warn('The account cannot pay for an upload; it waits', { learning_id: learningId, sender })
  return new Postpone(
    FUNDS_WAIT,
    `the account${sender === null ? '' : ` ${sender}`} cannot pay for the transaction; send it funds`,
  )
}

async function send(
  work: RecordWork,
  { hash, raw }: { readonly hash: string; readonly raw: string },
): Promise<SendResult> {
  const { chain, store, learningId, cid, context } = work
  const result = await chain.send(raw)
  switch (result) {
    case 'known':
      await work.onStep('transaction-sent')
      store.record(learningId, { status: 'tx_submitted', cid, txHash: hash })
      await work.onStep('submission-stored')
      await context.progress({ status: 'tx_submitted', ipfs_cid: cid, chain_tx_hash: hash, confirmations: 0 })
      return result
    // Mined, or the nonce was taken: the next pass looks at the receipts.
    case 'passed':
    case 'underpriced':
      return result
    case 'no-funds':
      throw outOfFunds(work, null)
    default:
      throw result satisfies never
  }
}

/** Sends again what the node has lost, fills a gap below it, or raises the fees when it waits too long. */
async function push(work: RecordWork, live: StoredTransaction, signed: readonly StoredTransaction[]): Promise<void> {
  const { chain, clock, learningId } = work
  const isOld = clock.nowMs() - live.created_at >= work.bumpAfterMs
  if (!(await chain.knows(live.tx_hash))) {
    work.assertPublishable(learningId)
    if ((await send(work, { hash: live.tx_hash, raw: live.raw })) !== 'underpriced') return
    if (isOld && (await bump(work, live, signed))) return
    throw new Postpone(work.pollMs, 'the fees of the transaction are too low now')
  }
  const pending = await chain.transactionCount(live.sender, 'pending')
  // One below it that the node has, with fees too low, holds it back too.
  const next = isOld ? Math.min(pending, await chain.transactionCount(live.sender, 'latest')) : pending
  if (next < live.nonce) await unblock(work, { sender: live.sender, nonce: next, isOld, isGap: next === pending })
  else if (isOld && (await bump(work, live, signed))) return
  throw new Postpone(work.pollMs, 'the transaction is not mined yet')
}

/** False when nothing was changed: too many tries, or the key is now another one. */
async function bump(work: RecordWork, live: StoredTransaction, signed: readonly StoredTransaction[]): Promise<boolean> {
  const { chain, context, learningId } = work
  if (signed.filter(({ nonce }) => nonce === live.nonce).length > BUMPS_MAX) return false
  work.assertPublishable(learningId)
  const signer = await openSigner(work.privateKeyRef, chain, context.log)
  if (signer.address !== live.sender) return false
  const call = await parseCall(live.raw)
  const fees = raiseFees(call.fees, await chain.fees())
  if ((await chain.balance(signer.address)) < call.gas * fees.maxFeePerGas) throw outOfFunds(work, signer.address)
  const transaction = await signer.sign({ ...call, fees })
  await work.onStep('signed')
  if (!keep(work, signer, { nonce: call.nonce, ...transaction }, { seen: signed.length, nonceIsNew: false }))
    return false
  await work.onStep('transaction-stored')
  context.log.info('The fees of an upload were raised', { learning_id: learningId, nonce: call.nonce })
  await send(work, transaction)
  return true
}

interface BlockingNonce {
  readonly sender: string
  readonly nonce: number
  /** The upload above has waited for long. */
  readonly isOld: boolean
  /** The node has no transaction with this nonce. */
  readonly isGap: boolean
}

/**
 * A nonce below that is not mined holds back everything above it: its worker was killed, its job is a dead letter, or its
 * fees are too low. Its bytes are sent from here, with higher fees after a while. Where its learning may not be published
 * any more, or nothing is stored, an empty transaction of the account to itself takes its place.
 */
async function unblock(work: RecordWork, { sender, nonce, isOld, isGap }: BlockingNonce): Promise<void> {
  const { chain, store, context } = work
  const stored = store.transactionAt(sender, nonce)
  if (stored !== null && isPublishable(() => work.assertPublishable(stored.learning_id))) return pushOther(work, stored)
  // What the node has and is not stored here is of another program.
  if (!isOld || (stored === null && !isGap)) return
  const signer = await openSigner(work.privateKeyRef, chain, context.log)
  if (signer.address !== sender) return
  const suggested = await chain.fees()
  const fees = stored === null ? suggested : raiseFees((await parseCall(stored.raw)).fees, suggested)
  const { raw, hash } = await signer.sign({ nonce, to: signer.address, data: '0x', gas: 21_000n, fees })
  if ((await chain.knows(hash)) || (await chain.send(raw)) !== 'known') return
  context.log.warn('A nonce held back an upload; an empty transaction took it', { nonce, hash })
}

/** Sends what is stored for another learning, or raises its fees: its own job may be gone. */
async function pushOther(work: RecordWork, stored: StoredTransaction): Promise<void> {
  const { chain, store, clock, context } = work
  const { learning_id: learningId, tx_hash, nonce, raw } = stored
  const result = (await chain.knows(tx_hash)) ? null : await chain.send(raw)
  if (result === 'known') {
    context.log.info('A stored transaction held back an upload and was sent', { nonce, tx_hash })
    return
  }
  const signed = store.transactionsOf(learningId)
  const cid = store.upload(learningId)?.ipfs_cid
  // None for this contract: it is of another configuration.
  if (typeof cid !== 'string' || signed.length === 0 || clock.nowMs() - stored.created_at < work.bumpAfterMs) return
  const progress = (): Promise<boolean> => Promise.resolve(true)
  await bump({ ...work, learningId, cid, context: { log: context.log, progress } }, stored, signed)
}
