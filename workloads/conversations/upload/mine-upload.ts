import { NonRetryable } from '../../../src/errors.ts'
import type { Handler, JobContext, Log } from '../../../src/job/definition.ts'
import { parseDurationMs } from '../../../src/time/duration.ts'
import { shownEndpoint } from '../../language-models/approved-fetch.ts'
import type { UploadPayload } from '../jobs/payloads.ts'
import type { PipelineParts, UploadSettings } from '../options.ts'
import { inTransaction } from '../store/database.ts'
import { Chain } from './chain.ts'
import { cidOf } from './cid.ts'
import { publishedDocument, readPublishable } from './document.ts'
import { addToIpfs } from './ipfs.ts'
import { type RecordedUpload, recordLearning, type UploadStep } from './record-learning.ts'
import type { Caller } from './request.ts'
import { UploadStore } from './upload-store.ts'

export type UploadResult = RecordedUpload | { readonly skipped: true; readonly reason: 'already-confirmed' }

export interface MineUploadOptions {
  /** Called at every step, for tests that stop the process there. */
  onStep?(step: UploadStep): void | Promise<void>
}

const CONFIRMATIONS = 2
const POLL = '4s'
const BUMP_AFTER = '3m'

/**
 * The handler of `mine_upload`: adds a learning to IPFS and records its content id on the chain. Any run may be stopped
 * anywhere and started again, by several workers at once: a learning is recorded once.
 */
export function mineUpload(
  parts: PipelineParts,
  { onStep = () => {} }: MineUploadOptions = {},
): Handler<UploadPayload, UploadResult> {
  return async (context) => {
    const { payload, signal, log } = context
    const settings = approvedSettings(payload, parts.upload, log)
    const { database, sanitize, clock } = parts
    const caller: Caller = { fetch: parts.fetch, clock, signal }
    const store = new UploadStore(database, clock, settings)
    const learningId = payload.learning_id
    const row = store.upload(learningId)
    if (row?.status === 'confirmed') return { skipped: true, reason: 'already-confirmed' }
    // Before anything is published: what is on IPFS cannot be taken back, and a wrong chain is a wrong configuration.
    const chain = await connect(settings, store, caller)
    const cid = row?.ipfs_cid ?? (await publish(context, { parts, settings, store, caller, onStep }))
    return recordLearning({
      learningId,
      cid,
      chain,
      store,
      clock,
      context,
      privateKeyRef: settings.privateKeyRef,
      confirmations: settings.confirmations ?? CONFIRMATIONS,
      pollMs: parseDurationMs(settings.poll ?? POLL, 'poll'),
      bumpAfterMs: parseDurationMs(settings.bumpAfter ?? BUMP_AFTER, 'bumpAfter'),
      assertPublishable: (id) => void readPublishable(database, sanitize, id),
      onStep,
    })
  }
}

async function connect(settings: UploadSettings, store: UploadStore, caller: Caller): Promise<Chain> {
  const chain = await Chain.connect(settings, caller)
  if (!store.knowsOtherGenesis(chain.genesis)) return chain
  throw new NonRetryable(
    `chain ${chain.chainId} began with another block when learnings were sent to it: it was started again, or the RPC leads ` +
      `to another chain; correct 'rpcUrl', or remove the rows of that chain from upload_transactions`,
  )
}

interface PublishParts {
  readonly parts: PipelineParts
  readonly settings: UploadSettings
  readonly store: UploadStore
  readonly caller: Caller
  onStep(step: UploadStep): void | Promise<void>
}

async function publish(
  { payload, progress }: JobContext<UploadPayload>,
  { parts, settings, store, caller, onStep }: PublishParts,
): Promise<string> {
  // In one transaction: a learning that is forgotten is either not sent, or said to be published.
  const document = inTransaction(parts.database, () => {
    const content = publishedDocument(readPublishable(parts.database, parts.sanitize, payload.learning_id))
    store.start(payload.learning_id, cidOf(content))
    return content
  })
  const cid = await addToIpfs(settings.ipfsEndpoint, document, caller)
  await onStep('ipfs-added')
  store.record(payload.learning_id, { status: 'ipfs_uploaded', cid })
  await onStep('ipfs-stored')
  await progress({ status: 'ipfs_uploaded', ipfs_cid: cid })
  return cid
}

/** A payload may only repeat what is configured: else anyone who can enqueue could send learnings anywhere. */
function approvedSettings(payload: UploadPayload, settings: UploadSettings | null, log: Log): UploadSettings {
  if (settings === null) throw new NonRetryable(`uploading is not configured; give 'upload', or remove the job`)
  const { ipfs_endpoint, chain_config } = payload
  const given = {
    ipfs_endpoint: isEndpoint(ipfs_endpoint, settings.ipfsEndpoint),
    rpc_url: isEndpoint(chain_config.rpc_url, settings.rpcUrl),
    contract_address: chain_config.contract_address.toLowerCase() === settings.contractAddress.toLowerCase(),
    private_key_ref: chain_config.private_key_ref === settings.privateKeyRef,
  }
  const others = Object.entries(given).flatMap(([name, isConfigured]) => (isConfigured ? [] : [name]))
  if (others.length === 0) return settings
  log.warn('An upload names what is not configured and was refused', {
    learning_id: payload.learning_id,
    fields: others,
  })
  throw new NonRetryable(`the payload has another ${others.join(', ')} than the configuration; nothing was sent`)
}

/** The pipeline's own payloads have no path, so that no access key is stored. What is reached is the configured URL. */
function isEndpoint(named: string, configured: string): boolean {
  return named === configured || named === shownEndpoint(configured)
}
