import { retentionOf } from '../engine/capability-checks.ts'
import type { Actor } from '../engine/dead-letters.ts'
import type { Engine } from '../engine/engine.ts'
import type { Finished, Retention, RetentionRule, Sweep, SweepStep } from '../engine/retention.ts'
import { OptionError } from '../errors.ts'
import type { Events } from '../events.ts'
import type { AnyJob } from '../job/definition.ts'
import { AGE_NAMES, type Ages, type AgesMs, checkAges } from '../job/keep.ts'
import { type OptionNames, refuseUnknown } from '../job/known-options.ts'
import type { Clock } from '../time/clock.ts'

/** How long finished jobs stay. Default: dead letters stay for ever; those of critical types do so whatever this says. */
export interface RetentionPolicy extends Ages {
  /** When the jobs take more bytes than this, the oldest completed ones go, whatever their age. */
  readonly bytes?: number
  /** Other ages for single types. Naming a critical one here is meant. */
  readonly types?: Readonly<Record<string, Ages>>
}

const DAY_MS = 86_400_000
/** Seven days. */
const DEFAULT_AGES: Required<AgesMs> = { completed: 7 * DAY_MS, ended: 7 * DAY_MS, dead: null }
const WHATS: readonly Finished[] = ['completed', 'ended', 'dead']

const POLICY_NAMES: OptionNames<RetentionPolicy> = { ...AGE_NAMES, bytes: true, types: true }

/** Throws what is wrong with a policy; worth asking before the first pass. */
export function checkPolicy(policy: RetentionPolicy): void {
  refuseUnknown(policy, POLICY_NAMES, `'retention'`)
  for (const [type, ages] of Object.entries(policy.types ?? {}))
    refuseUnknown(ages, AGE_NAMES, `'retention.types.${type}'`)
  rulesOf(policy, [], 0)
  const { bytes } = policy
  if (bytes === undefined || (Number.isSafeInteger(bytes) && bytes > 0)) return
  throw new OptionError(`'retention.bytes' is ${bytes}; give a whole number of bytes above 0`)
}

/** What the policy and the definitions say, as times. Pure. */
export function rulesOf(policy: RetentionPolicy, jobs: Iterable<AnyJob>, nowMs: number): readonly RetentionRule[] {
  const general = { ...DEFAULT_AGES, ...checkAges(policy, 'retention') }
  const byType = new Map<string, AgesMs>()
  for (const { type, retention, critical } of jobs) byType.set(type, { ...retention, ...(critical && { dead: null }) })
  for (const [type, ages] of Object.entries(policy.types ?? {})) {
    byType.set(type, { ...byType.get(type), ...checkAges(ages, `retention.types.${type}`) })
  }
  const rule = (what: Finished, ageMs: number | null, type?: string): RetentionRule => ({
    what,
    ...(type !== undefined && { type }),
    beforeMs: ageMs === null ? null : nowMs - ageMs,
  })
  return [
    ...WHATS.map((what) => rule(what, general[what])),
    ...[...byType].flatMap(([type, ages]) =>
      WHATS.flatMap((what) => {
        const ageMs = ages[what]
        return ageMs === undefined ? [] : [rule(what, ageMs, type)]
      }),
    ),
  ]
}

/** Completed jobs of any age, but for the types whose completed ones are kept for ever. */
function rulesForSpace(rules: readonly RetentionRule[], nowMs: number): readonly RetentionRule[] {
  return rules
    .filter(({ what }) => what === 'completed')
    .map((rule) => ({ ...rule, beforeMs: rule.beforeMs === null ? null : nowMs + 1 }))
}

export interface RetainParts {
  readonly engine: Engine
  readonly clock: Clock
  readonly events: Events
  /** Their own ages go before the policy's, and the dead letters of critical ones stay. */
  readonly definitions?: ReadonlyMap<string, AnyJob>
}

export interface Retained {
  /** By age. */
  readonly removed: number
  /** For space. */
  readonly evicted: number
  /** The signal ended the pass; the next one begins again at the oldest job. */
  readonly interrupted: boolean
}

/** Jobs looked at per step: about one short transaction. bench/scenarios/retention.ts measures who feels it. */
const STEP = 250
/** The least rest after a step: one tick of a timer, in which everybody else's writes find their turn. */
const REST_MS = 1

/** One pass over all finished jobs. It rests for as long as it works, so that workers keep their pace beside it. */
export async function retainOnce(
  parts: RetainParts,
  policy: RetentionPolicy = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<Retained> {
  checkPolicy(policy)
  const { clock, engine, events } = parts
  const startedAtMs = clock.monotonicMs()
  const pass: Pass = { clock, signal, retention: retentionOf(engine) }
  const rules = rulesOf(policy, parts.definitions?.values() ?? [], clock.nowMs())
  const removed = await sweepAll(pass, rules, {})
  const evicted = policy.bytes === undefined ? 0 : await makeRoom(pass, rules, policy.bytes)
  await compactAll(pass)
  const retained = { removed, evicted, interrupted: signal.aborted }
  events.emit('retention.pass', { ...retained, durationMs: Math.round(clock.monotonicMs() - startedAtMs) })
  return retained
}

interface Pass {
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly retention: Retention
}

export interface SweepOptions {
  readonly signal?: AbortSignal
  readonly dryRun?: boolean
  readonly by?: Actor
  onProgress?(removed: number): void
}

/** One pass by rules that somebody else has made: for clean-up by hand. Answers how many went, or would. */
export async function sweepOnce(
  { engine, clock }: Pick<RetainParts, 'engine' | 'clock'>,
  rules: readonly RetentionRule[],
  options: SweepOptions = {},
): Promise<number> {
  const pass: Pass = { clock, signal: options.signal ?? new AbortController().signal, retention: retentionOf(engine) }
  const removed = await sweepAll(pass, rules, options)
  if (options.dryRun !== true) await compactAll(pass)
  return removed
}

async function sweepAll(pass: Pass, rules: readonly RetentionRule[], options: SweepOptions): Promise<number> {
  if (rules.every(({ beforeMs }) => beforeMs === null)) return 0
  const { dryRun = false, by } = options
  let removed = 0
  let from: string | null = null
  while (!pass.signal.aborted) {
    const step: SweepStep = { from, max: STEP, dryRun, ...(by && { by }) }
    const sweep: Sweep = await resting(pass, () => pass.retention.sweep(rules, step))
    removed += sweep.removed
    options.onProgress?.(removed)
    from = sweep.next
    if (from === null) break
  }
  return removed
}

/** Completed jobs go in the order of their arrival until the rest takes no more than `bytes`. */
async function makeRoom(pass: Pass, rules: readonly RetentionRule[], bytes: number): Promise<number> {
  const spaceRules = rulesForSpace(rules, pass.clock.nowMs())
  let evicted = 0
  let from: string | null = null
  while (!pass.signal.aborted && (await pass.retention.usedBytes()) > bytes) {
    const sweep = await resting(pass, () => pass.retention.sweep(spaceRules, { from, max: STEP }))
    evicted += sweep.removed
    from = sweep.next
    if (from === null) break
  }
  return evicted
}

async function compactAll(pass: Pass): Promise<void> {
  let isLeft = true
  while (isLeft && !pass.signal.aborted) isLeft = await resting(pass, () => pass.retention.compact())
}

/** Afterwards the others have at least as long as this took. */
async function resting<Value>({ clock, signal }: Pass, work: () => Promise<Value>): Promise<Value> {
  const startedAtMs = clock.monotonicMs()
  const value = await work()
  await clock.sleep(Math.max(REST_MS, clock.monotonicMs() - startedAtMs), signal)
  return value
}
