import type { ClaimRequest, Consumer, ConsumerListener, Subscription } from '../../../engine/engine.ts'
import type { Lease, Lost, Settlement } from '../../../engine/outcome.ts'
import { readyTypes } from '../../../engine/subscriptions.ts'
import { EngineError } from '../../../errors.ts'
import { backgroundClock, type Clock } from '../../../time/clock.ts'
import type { RedisConsumer } from '../consumer.ts'
import { finishFired } from './fired.ts'
import { type Answered, KeptAnswers } from './kept-answers.ts'
import type { TypeStores } from './stores.ts'

/** A reaper looks again after this: nothing announces a lock that ends. */
const EXPIRED_MS = 1_000
/** How soon a type whose node was away is looked at again. */
const AWAY_MS = 250

/**
 * One consumer for each type, as one. A claim asks only those that may have work, in turn. A type whose node is away is
 * left out until its connection is back, so that the other types go on.
 */
export class ClusterConsumer implements Consumer {
  readonly isRemote = true
  readonly #stores: TypeStores
  readonly #clock: Clock
  readonly #subscription: Subscription
  readonly #consumers = new Map<string, Promise<RedisConsumer>>()
  readonly #listeners = new Set<ConsumerListener>()
  readonly #closing = new AbortController()
  /** Types that had no work when they were last asked, until their wake-up. */
  readonly #idle = new Set<string>()
  /** Types whose node does not answer, or refuses: left out until it does. */
  readonly #away = new Set<string>()
  readonly #kept = new KeptAnswers()
  #woken = Promise.withResolvers<void>()
  /** The type that is asked first, so that none starves the others. */
  #turn = 0

  constructor(stores: TypeStores, clock: Clock, subscription: Subscription) {
    this.#stores = stores
    this.#clock = clock
    this.#subscription = subscription
  }

  /** Rejects if a type's node cannot be reached. A reaper of every type begins with those that it reaches. */
  async ready(): Promise<void> {
    const { types } = this.#subscription
    if (types !== 'every') await Promise.all(types.map(({ type }) => this.#of(type)))
    // From now on it notices a clock that is set.
    else
      await this.#stores.types().then(
        (names) => Promise.allSettled(names.map((type) => this.#of(type))),
        () => {},
      )
  }

  #of(type: string): Promise<RedisConsumer> {
    const known = this.#consumers.get(type)
    if (known !== undefined) return known
    const opening = this.#open(type)
    this.#consumers.set(type, opening)
    opening.catch(() => this.#consumers.delete(type))
    return opening
  }

  async #open(type: string): Promise<RedisConsumer> {
    const { types, worker } = this.#subscription
    const own = types === 'every' ? types : types.filter((subscribed) => subscribed.type === type)
    const store = types === 'every' ? await this.#stores.of(type) : await this.#stores.enlisted(type)
    const consumer = await store.consume({ types: own, worker })
    consumer.listen({
      onLost: (lost) => {
        for (const { onLost } of this.#listeners) onLost?.(lost)
      },
      onTrouble: (error) => this.#tellTrouble(error),
    })
    if (this.#closing.signal.aborted) await consumer.close()
    return consumer
  }

  #tellTrouble(error: unknown): void {
    for (const { onTrouble } of this.#listeners) onTrouble?.(error)
  }

  async claim(request: ClaimRequest): Promise<readonly Lease[]> {
    const signal = AbortSignal.any([request.signal, this.#closing.signal])
    const untilMs = this.#clock.monotonicMs() + request.waitMs
    const isExpired = request.from === 'expired'
    const types = isExpired ? [] : readyTypes(this.#subscription, 'redis').map(({ type }) => type)
    const asked = types.filter((type) => (request.perType?.[type] ?? 1) > 0)
    while (!signal.aborted) {
      const leases = isExpired
        ? await this.#takeExpired(request, signal)
        : await this.#takeReady(asked, request, signal)
      if (leases.length > 0) return leases
      const leftMs = untilMs - this.#clock.monotonicMs()
      if (leftMs <= 0) return []
      if (isExpired) await this.#clock.sleep(Math.min(leftMs, EXPIRED_MS), signal)
      else await this.#sleep(asked, leftMs, signal)
    }
    return []
  }

  async #takeExpired(request: ClaimRequest, signal: AbortSignal): Promise<readonly Lease[]> {
    const { types } = this.#subscription
    const names = types === 'every' ? await this.#stores.types() : types.map(({ type }) => type)
    const leases = await this.#takeFrom([await this.#present(names)], request, signal)
    if (leases.length === 0) await finishFired(this.#stores)
    return leases
  }

  /** Those that may have work first, then the others: they may have some that nobody was woken for. */
  async #takeReady(types: readonly string[], request: ClaimRequest, signal: AbortSignal): Promise<readonly Lease[]> {
    this.#turn = (this.#turn + 1) % Math.max(1, types.length)
    const inTurn = [...types.slice(this.#turn), ...types.slice(0, this.#turn)]
    const present = await this.#present(inTurn)
    const idle = new Set(this.#idle)
    const rounds = [present.filter((type) => !idle.has(type)), present.filter((type) => idle.has(type))]
    return this.#takeFrom(rounds, request, signal)
  }

  /** A later round only if the ones before gave nothing. Rejects if every type failed. */
  async #takeFrom(
    rounds: readonly (readonly string[])[],
    request: ClaimRequest,
    signal: AbortSignal,
  ): Promise<readonly Lease[]> {
    const failures: unknown[] = []
    for (const types of rounds) {
      const leases = await this.#take(types, request, { signal, failures })
      if (leases.length === 0) continue
      for (const error of failures) this.#tellTrouble(error)
      return leases
    }
    if (failures.length > 0 && failures.length === rounds.flat().length) throw failures[0]
    for (const error of failures) this.#tellTrouble(error)
    return []
  }

  /** One after another, because together they would claim more than was asked for. */
  async #take(
    types: readonly string[],
    request: ClaimRequest,
    { signal, failures }: { readonly signal: AbortSignal; readonly failures: unknown[] },
  ): Promise<readonly Lease[]> {
    const leases: Lease[] = []
    for (const type of types) {
      const max = Math.min(request.max - leases.length, request.perType?.[type] ?? request.max)
      if (signal.aborted || leases.length >= request.max) break
      try {
        const consumer = await this.#of(type)
        // Its node went away since: a call would wait for it, and the other types with it.
        if (types.length > 1 && !consumer.isReady) continue
        const taken = await consumer.claim({ ...request, max, waitMs: 0, signal })
        leases.push(...taken)
        if (taken.length === 0 && request.from !== 'expired') this.#rest(type, consumer)
      } catch (error) {
        failures.push(error)
        this.#leaveOut(type)
      }
    }
    return leases
  }

  /** Those whose node answers; all of them if none does, so that the caller is told why. */
  async #present(types: readonly string[]): Promise<readonly string[]> {
    const present: string[] = []
    for (const type of types) {
      if (this.#away.has(type)) continue
      const consumer = await this.#of(type).catch(() => null)
      if (consumer?.isReady === true) present.push(type)
      else {
        this.#leaveOut(type)
        const text = `Redis: the node of type '${type}' is away; its jobs wait until the cluster has another, the other types go on`
        this.#tellTrouble(new EngineError('ERR_STORAGE_OPEN', text))
      }
    }
    return present.length === 0 ? types : present
  }

  /** Until its node answers again. A claim would wait for that, and hold up the other types. */
  #leaveOut(type: string): void {
    if (this.#away.has(type)) return
    this.#away.add(type)
    const isBack = async (): Promise<void> => {
      while (!this.#closing.signal.aborted) {
        const answered = await this.#stores
          .of(type)
          .then((store) => store.counts())
          .catch(() => null)
        if (answered !== null) break
        await backgroundClock.sleep(AWAY_MS, this.#closing.signal)
      }
      this.#away.delete(type)
      this.#wake()
    }
    void isBack()
  }

  #wake(): void {
    this.#woken.resolve()
    this.#woken = Promise.withResolvers<void>()
  }

  #rest(type: string, consumer: RedisConsumer): void {
    if (this.#idle.has(type)) return
    this.#idle.add(type)
    void consumer.waitForWork(this.#closing.signal).then(() => {
      this.#idle.delete(type)
      this.#wake()
    })
  }

  async #sleep(asked: readonly string[], leftMs: number, signal: AbortSignal): Promise<void> {
    // A type that is neither idle nor away was woken meanwhile.
    if (asked.some((type) => !this.#idle.has(type) && !this.#away.has(type))) return
    const over = new AbortController()
    await Promise.race([this.#woken.promise, this.#clock.sleep(leftMs, AbortSignal.any([signal, over.signal]))])
    over.abort()
  }

  /**
   * A type whose node is away does not stop the renewals of the others. Nobody else can take its leases meanwhile, because
   * the same node would have to hand them out; the first renewal after that tells which are lost.
   */
  async renew(leases: readonly Lease[], leaseMs: number): Promise<readonly Lost[]> {
    const answers = await this.#byType(
      leases,
      ({ job }) => job.type,
      (consumer, own) => consumer.renew(own, leaseMs),
    )
    const failures = answers.filter((answer) => 'error' in answer)
    const [first] = failures
    if (first !== undefined && failures.length === answers.length) throw first.error
    for (const { error } of failures) this.#tellTrouble(error)
    return answers.flatMap((answer) => ('lost' in answer ? answer.lost : []))
  }

  /** The worker repeats a call that rejected whole, so what some types have answered is kept for that. */
  async settle(settlements: readonly Settlement[]): Promise<readonly Lost[]> {
    const { known, asked } = this.#kept.split(settlements)
    const answers = await this.#byType(
      asked,
      ({ lease }) => lease.job.type,
      (consumer, own) => consumer.settle(own),
    )
    const failed = answers.find((answer) => 'error' in answer)
    if (failed !== undefined) {
      this.#kept.keep([...known, ...answers])
      throw failed.error
    }
    return [...known, ...answers].flatMap((answer) => ('lost' in answer ? answer.lost : []))
  }

  /** All types are asked, also if one fails. */
  #byType<Item extends Lease | Settlement>(
    items: readonly Item[],
    typeOf: (item: Item) => string,
    ask: (consumer: RedisConsumer, items: readonly Item[]) => Promise<readonly Lost[]>,
  ): Promise<readonly Answered[]> {
    return Promise.all(
      [...Map.groupBy(items, typeOf)].map(async ([type, own]): Promise<Answered> => {
        try {
          const tokens = own.map((item) => ('lease' in item ? item.lease.token : item.token))
          return { tokens, lost: await ask(await this.#of(type), own) }
        } catch (error) {
          return { error }
        }
      }),
    )
  }

  async report(lease: Lease, progress: string): Promise<boolean> {
    return (await this.#of(lease.job.type)).report(lease, progress)
  }

  listen(listener: ConsumerListener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    const consumers = await Promise.allSettled([...this.#consumers.values()])
    await Promise.all(consumers.flatMap((opened) => (opened.status === 'fulfilled' ? [opened.value.close()] : [])))
  }
}
