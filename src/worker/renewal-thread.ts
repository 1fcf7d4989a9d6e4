/**
 * The thread that renews leases, so that a handler that blocks the event loop keeps its lease. It renews the leases that the
 * worker has written to shared memory, through an engine of its own. It loads and opens that engine for the first lease that
 * has to be renewed: a worker whose jobs are short never pays for a second connection.
 */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import type { Consumer, Engine } from '../engine/engine.ts'
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

interface Store {
  readonly engine: Engine
  readonly consumer: Consumer
}

// What is thrown ends the thread, and the worker reports it.
renewUntilClosed(port, workerData)

function renewUntilClosed(port: MessagePort, { protocol, url, worker }: RenewalThreadData): void {
  if (protocol !== RENEWAL_PROTOCOL) {
    throw new Error('the file of the renewal thread is of another version of millrace; build the bundle again')
  }
  let store: Promise<Store> | null = null
  const leases = new LeaseReader()
  const renewals = new Renewals({
    clock: systemClock,
    consumer: {
      renew: async (held, leaseMs) => {
        store ??= openStore(url, worker).catch(endThread)
        return (await store).consumer.renew(held, leaseMs)
      },
    },
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
        void closeStore(store).finally(() => port.close())
        return
      default:
        received satisfies never
    }
  })
  send({ kind: 'ready' })
}

async function openStore(url: string, worker: string): Promise<Store> {
  const { openEngine } = await import('../engine/open.ts')
  const engine = await openEngine(url, { clock: systemClock, migrate: false })
  // It never claims. A reaper's subscription needs no types.
  return { engine, consumer: await engine.consume({ types: 'every', worker }) }
}

/** The worker reports the error and renews on its own event loop and connection. */
function endThread(error: unknown): Promise<never> {
  setImmediate(() => {
    throw error
  })
  return new Promise(() => {})
}

async function closeStore(opening: Promise<Store> | null): Promise<void> {
  const store = await opening
  await store?.consumer.close()
  await store?.engine.close()
}
