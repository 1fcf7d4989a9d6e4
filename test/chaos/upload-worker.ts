/**
 * A worker process for the chaos of uploads: `upload-worker.ts <file> <settings as JSON>`. It starts to work at the message
 * `{ killAt }`, tells each step, and kills itself at the step that was named.
 */
import { flushCompileCache } from 'node:module'
import { open } from '../../src/index.ts'
import { defineJob } from '../../src/job/definition.ts'
import { systemClock } from '../../src/time/clock.ts'
import { CONVERSATION_JOBS, MINE_UPLOAD } from '../../workloads/conversations/jobs/contract.ts'
import { uploadPayload } from '../../workloads/conversations/jobs/payloads.ts'
import type { UploadSettings } from '../../workloads/conversations/options.ts'
import { openDatabase } from '../../workloads/conversations/store/database.ts'
import { mineUpload } from '../../workloads/conversations/upload/mine-upload.ts'
import { loadViem } from '../../workloads/conversations/upload/viem.ts'
import { approvedFetch } from '../../workloads/language-models/approved-fetch.ts'

const [file = '', json = '{}'] = process.argv.slice(2)
const settings: UploadSettings = JSON.parse(json)
const database = openDatabase(file, { nowMs: systemClock.nowMs() })
let killAt: string | null = null
const run = mineUpload(
  {
    database,
    secret: new Uint8Array(32),
    clock: systemClock,
    sanitize: (text) => ({ text, findings: [], version: 'test' }),
    model: {
      name: 'none',
      endpoint: null,
      findPersonalData: () => Promise.reject(new Error('uploads ask no model')),
      findLearnings: () => Promise.reject(new Error('uploads ask no model')),
    },
    fetch: approvedFetch({ endpoints: [settings.ipfsEndpoint, settings.rpcUrl] }),
    extract: { minConfidence: 0.7, categories: [] },
    upload: settings,
  },
  {
    onStep(step) {
      process.send?.({ step })
      if (step === killAt) process.kill(process.pid, 'SIGKILL')
    },
  },
)
const upload = defineJob({
  type: MINE_UPLOAD,
  payload: uploadPayload,
  priority: CONVERSATION_JOBS[MINE_UPLOAD].priority,
  backoff: { kind: 'fixed', delay: '100ms' },
  lease: '1s',
  run,
})
await loadViem()
const mill = await open(`sqlite:${file}`, { log: { debug() {}, info() {}, warn() {}, error: console.error } })

process.on('message', async (message: { readonly killAt: string | null }) => {
  killAt = message.killAt
  const worker = await mill.work([upload], { concurrency: 4, poll: '50ms', reap: '1s', signals: true })
  process.send?.({ step: 'working' })
  await worker.stopped
  await mill.close()
  database.close()
  process.disconnect?.()
})
// For the processes after this one, which may be killed before it would be written.
flushCompileCache()
// Its parent was stopped.
process.once('disconnect', () => process.exit())
process.send?.({ step: 'ready' })
