import type { Consumer, ConsumerListener, Engine, Inspector, Subscription } from '../../../src/engine/engine.ts'
import { fieldOf } from '../../../src/errors.ts'
import { isFinished } from '../../../src/job/states.ts'
import { replaced } from '../../../src/testing/replaced.ts'
import { type AtRest, watchClaim, watchRenew, watchReport } from './claims.ts'
import { watchCancel, watchDesk } from './desk.ts'
import { watchEnqueue } from './enqueues.ts'
import { watchRecords } from './records.ts'
import { watchRetention } from './retention.ts'
import { watchSettle } from './settles.ts'
import { answered, type Watch } from './watch.ts'

interface WatchOptions {
  readonly watch: Watch
  readonly atRest: AtRest
  /** Other processes go on with the same engine when one has closed it. */
  readonly isShared: boolean
}

/** The engine, with every answer compared with the store at once. It changes nothing. */
export function watched(engine: Engine, { watch, atRest, isShared }: WatchOptions): Engine {
  const changes = new Map<PropertyKey, unknown>([
    ['enqueue', watchEnqueue(engine, watch)],
    ['consume', (subscription: Subscription) => watchConsumer(engine, subscription, { watch, atRest })],
    ['close', () => watchClose(engine, watch, isShared)],
  ])
  const { inspector, controls, deadLetters, records, retention } = engine
  if (inspector !== undefined) changes.set('inspector', watchWait(inspector, watch))
  if (controls !== undefined) changes.set('controls', watchCancel(engine, controls, { watch, atRest }))
  if (deadLetters !== undefined) changes.set('deadLetters', watchDesk(engine, deadLetters, watch))
  if (records !== undefined) changes.set('records', watchRecords(engine, records, watch))
  if (retention !== undefined) changes.set('retention', watchRetention(engine, retention, watch))
  return replaced(engine, changes)
}

async function watchConsumer(
  engine: Engine,
  subscription: Subscription,
  { watch, atRest }: { readonly watch: Watch; readonly atRest: AtRest },
): Promise<Consumer> {
  const consumer = await answered(watch, 'a subscription', () => engine.consume(subscription))
  if (subscription.types !== 'every') {
    for (const { type, limit, slots } of subscription.types)
      if (limit !== undefined || slots !== undefined) watch.limited.add(type)
  }
  let isClosed = false
  const told = new Set<string>()
  let listening = 0
  const wasTold = (token: string) => (): boolean | null => (listening === 0 || isClosed ? null : told.has(token))
  const parts = { engine, consumer, subscription, watch, wasTold }
  const claiming = new Set<object>()
  const claim = watchClaim(parts, () => isClosed, atRest)
  const calls: Pick<Consumer, 'claim' | 'renew' | 'settle' | 'report' | 'listen' | 'close'> = {
    listen: (listener) => {
      const onLost: ConsumerListener['onLost'] = (lost) => {
        told.add(lost.lease.token)
        listener.onLost?.(lost)
      }
      const stop = consumer.listen({ ...listener, onLost })
      listening += 1
      return () => {
        listening -= 1
        stop()
      }
    },
    claim: async (request) => {
      const mark = {}
      claiming.add(mark)
      return claim(request).finally(() => claiming.delete(mark))
    },
    renew: watchRenew(parts),
    settle: watchSettle(parts),
    report: watchReport(parts),
    close: async () => {
      await answered(watch, 'a close', () => consumer.close())
      isClosed = true
      atRest(() =>
        watch.expect(claiming.size === 0, null, () => `${subscription.worker} has left, and its claim waits on`),
      )
    },
  }
  return replaced(consumer, new Map<PropertyKey, unknown>(Object.entries(calls)))
}

async function watchClose(engine: Engine, watch: Watch, isShared: boolean): Promise<void> {
  await engine.close()
  if (isShared) return
  const code = await engine.ping().then(
    () => null,
    (error: unknown) => fieldOf(error, 'code'),
  )
  watch.same(null, 'what a closed engine answers with', code, 'ERR_CLOSED')
}

/** A wait ends when the job is over, at its time, or when it is told to. */
function watchWait(inspector: Inspector, watch: Watch): Inspector {
  const waitFor: Inspector['waitFor'] = async (id, wait) => {
    const untilMs = watch.clock.monotonicMs() + wait.waitMs
    const late = (): void => watch.expect(false, id, () => `a wait of ${wait.waitMs} ms for ${id} does not end`)
    const stop = watch.clock.after(wait.waitMs + 1, late)
    const view = await inspector.waitFor(id, wait).finally(stop)
    const leftMs = untilMs - watch.clock.monotonicMs()
    const isOver = view === null || isFinished(view.state) || wait.signal.aborted || leftMs <= 0
    watch.expect(isOver, id, () => `a wait for ${id} ended ${leftMs} ms too early, while it is ${view?.state}`)
    return view
  }
  return replaced(inspector, new Map<PropertyKey, unknown>([['waitFor', waitFor]]))
}
