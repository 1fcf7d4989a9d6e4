/**
 * The thread that renews leases, so that a handler which blocks the event loop longer than its lease keeps it. It
 * opens the engine's data a second time and does nothing but renew what the worker tells it to.
 */
import { parentPort, workerData } from 'node:worker_threads'
import type { Consumer } from '../engine/engine.ts'
import { openEngine } from '../engine/open.ts'
import type { Lease } from '../engine/outcome.ts'
import { PassingMap } from '../engine/passing-map.ts'
import { systemClock } from '../time/clock.ts'
import type { FromRenewalThread, RenewalThreadData, ToRenewalThread } from './renewal-protocol.ts'
import { type Renewable, Renewals } from './renewals.ts'

const { url, worker }: RenewalThreadData = workerData
const port = parentPort
if (port === null) throw new Error('the renewal thread was not started by a worker')
const send = (sent: FromRenewalThread): void => port.postMessage(sent)

const engine = await openEngine(url, { clock: systemClock, migrate: false })
// It never claims; the subscription of a reaper is the one that needs no types.
const consumer: Consumer = await engine.consume({ types: 'every', worker })
const held = new PassingMap<number, Renewable>()
const renewals = new Renewals({
  clock: systemClock,
  consumer,
  held: () => held.values(),
  onLost: (handle, reason) => {
    if (held.delete(handle)) send({ kind: 'lost', handle, reason })
  },
  onError: (error) => {
    const { name, message } = error instanceof Error ? error : { name: 'NonError', message: String(error) }
    send({ kind: 'error', name, message })
  },
})

port.on('message', (received: ToRenewalThread) => {
  switch (received.kind) {
    case 'hold':
      for (const renewable of renewables(received)) held.set(renewable.handle, renewable)
      renewals.watch(received.leaseMs)
      return
    case 'drop':
      for (const handle of received.handles) held.delete(handle)
      return
    case 'close':
      renewals.close()
      void consumer
        .close()
        .then(() => engine.close())
        .finally(() => port.close())
      return
    default:
      received satisfies never
  }
})
send({ kind: 'ready' })

function renewables(batch: Extract<ToRenewalThread, { kind: 'hold' }>): readonly Renewable[] {
  const { type, leaseMs } = batch
  const heldAtMs = systemClock.monotonicMs()
  let read: { readonly ids: readonly string[]; readonly tokens: readonly string[] } | null = null
  return batch.handles.map((handle, index) => ({
    handle,
    leaseMs,
    heldAtMs,
    timeoutMs: batch.timeoutMs[index] ?? 0,
    renewedAtMs: heldAtMs,
    get lease() {
      read ??= { ids: JSON.parse(batch.ids), tokens: JSON.parse(batch.tokens) }
      return leaseOf(read.ids[index] ?? '', type, read.tokens[index] ?? '')
    },
  }))
}

/** `renew` reads the id, the type and the token; the rest of a lease is none of this thread's business. */
function leaseOf(id: string, type: string, token: string): Lease {
  const job = {
    id,
    type,
    payload: 'null',
    payloadVersion: 1,
    priority: 5,
    attempts: 1,
    createdAtMs: 0,
    runAtMs: 0,
    key: null,
    latestKey: null,
    tenant: null,
    options: null,
    after: null,
  }
  return { job, attempt: 1, token, expiresAtMs: 0 }
}
