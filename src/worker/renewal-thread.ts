/**
 * The thread that renews leases, so that a handler that blocks the event loop keeps its lease. It opens the engine a second
 * time and renews the leases that the worker has written to shared memory.
 */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import type { Consumer } from '../engine/engine.ts'
import { openEngine } from '../engine/open.ts'
import { isError, messageOf } from '../errors.ts'
import { systemClock } from '../time/clock.ts'
import { Renewals } from './renewals.ts'
import {
  type FromRenewalThread,
  LeaseReader,
  RENEWAL_PROTOCOL,
  type RenewalThreadData,
  type ToRenewalThread,
} from './shared-leases.ts'

const port = parentPort
if (port === null) throw new Error('the renewal thread was not started by a worker')
const send = (sent: FromRenewalThread): void => port.postMessage(sent)

// A function, because a bundle in CommonJS cannot await at the top level. A rejection ends the thread, and the worker reports it.
void renewUntilClosed(port, workerData)

async function renewUntilClosed(port: MessagePort, { protocol, url, worker }: RenewalThreadData): Promise<void> {
  if (protocol !== RENEWAL_PROTOCOL) {
    throw new Error('the file of the renewal thread is of another version of millrace; build the bundle again')
  }
  const engine = await openEngine(url, { clock: systemClock, migrate: false })
  // It never claims. A reaper's subscription needs no types.
  const consumer: Consumer = await engine.consume({ types: 'every', worker })
  const leases = new LeaseReader()
  const renewals = new Renewals({
    clock: systemClock,
    consumer,
    held: () => leases.held(),
    onLost: (handle, reason) => {
      if (leases.lose(handle)) send({ kind: 'lost', handle, reason })
    },
    onError: (error) => {
      send({ kind: 'error', name: isError(error) ? error.name : 'NonError', message: messageOf(error) })
    },
  })
  port.on('message', (received: ToRenewalThread) => {
    switch (received.kind) {
      case 'page':
        leases.add(received.page)
        return
      case 'watch':
        renewals.watch(received.leaseMs)
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
}
