import type { Actor, AuditAction, DeadLetters } from '../../../src/engine/dead-letters.ts'
import type { Controls, Engine } from '../../../src/engine/engine.ts'
import type { JobState } from '../../../src/job/states.ts'
import { replaced } from '../../../src/testing/replaced.ts'
import type { AtRest } from './claims.ts'
import { answered, isLive, judgeUnchanged, viewsOf, type Watch } from './watch.ts'

export function watchCancel(
  engine: Engine,
  controls: Controls,
  { watch, atRest }: { readonly watch: Watch; readonly atRest: AtRest },
): Controls {
  return {
    cancel: async (id, by) => {
      const before = (await viewsOf(engine, [id])).get(id)
      const isDone = await answered(watch, 'a cancel', () => controls.cancel(id, by))
      const after = (await viewsOf(engine, [id])).get(id)
      watch.same(id, `the answer to the cancel of ${id}`, isDone, before !== undefined && isLive(before))
      if (isDone) {
        watch.same(id, `the state of ${id}, which was cancelled`, after?.state, 'cancelled')
        const held = watch.leases.get(id)
        // One whose lease had run out may have heard of that already.
        const isHeld = held !== undefined && watch.holds(id, held.token)
        watch.leases.delete(id)
        if (before?.state === 'in_progress' && isHeld) {
          atRest(() =>
            watch.expect(held.wasTold() !== false, id, () => `the holder of ${id} was not told that it is cancelled`),
          )
        }
      } else judgeUnchanged(watch, { id, what: 'cancel' }, after, before)
      return isDone
    },
  }
}

interface Act {
  readonly engine: Engine
  readonly watch: Watch
  readonly ids: readonly string[]
  readonly by: Actor
  readonly action: AuditAction
  /** The state that a letter must have for the act, and the one that it has then; null: it is gone. */
  readonly from: readonly JobState[]
  readonly to: JobState | null
  /** The payload that a replay gives it. */
  readonly payload?: string | undefined
}

async function judgeAct(act: Act, make: () => Promise<readonly boolean[]>): Promise<readonly boolean[]> {
  const { engine, watch, ids, by, action, from, to, payload } = act
  const before = await viewsOf(engine, ids)
  const done = await answered(watch, `the act '${action}'`, make)
  const after = await viewsOf(engine, ids)
  const entries = (await engine.deadLetters?.audit({ action, limit: 2 * ids.length + 2 })) ?? []
  for (const [index, id] of ids.entries()) {
    const [was, is] = [before.get(id), after.get(id)]
    const isAudited = entries.some((entry) => entry.jobId === id && entry.who === by.who && entry.reason === by.reason)
    if (done[index] !== true) {
      judgeUnchanged(watch, { id, what: action }, is, was)
      continue
    }
    const isAllowed = was !== undefined && from.includes(was.state)
    watch.expect(
      isAllowed,
      id,
      () => `the act '${action}' on ${id}, which is ${was?.state ?? 'gone'}, was answered as done`,
    )
    // A claim that waited may have taken it at once.
    const isSo =
      is?.state === to || (is === undefined && to === null) || (to === 'queued' && is?.state === 'in_progress')
    watch.expect(isSo, id, () => `${id} is ${is?.state ?? 'gone'} after the act '${action}'`)
    watch.expect(isAudited, id, () => `the act '${action}' on ${id} is not in the audit`)
    if (payload !== undefined) watch.same(id, `the edited payload of ${id}`, is?.payload, payload)
    if (to === 'queued') watch.same(id, `the replays of ${id}`, is?.replays, (was?.replays ?? 0) + 1)
    const kept = (view: typeof is): unknown => [view?.options, view?.priority, view?.attempts, view?.key, view?.tenant]
    if (to !== null) watch.same(id, `the options of ${id} after the act '${action}'`, kept(is), kept(was))
  }
  return done
}

export function watchDesk(engine: Engine, desk: DeadLetters, watch: Watch): DeadLetters {
  const letters = ['dead_letter'] as const
  const removable = ['dead_letter', 'discarded'] as const
  const acts: Pick<DeadLetters, 'requeue' | 'discard' | 'undiscard' | 'remove' | 'note'> = {
    requeue: (ids, by, edit) =>
      judgeAct({ engine, watch, ids, by, action: 'replay', from: letters, to: 'queued', payload: edit?.payload }, () =>
        desk.requeue(ids, by, edit),
      ),
    discard: (ids, by) =>
      judgeAct({ engine, watch, ids, by, action: 'discard', from: letters, to: 'discarded' }, () =>
        desk.discard(ids, by),
      ),
    undiscard: (ids, by) =>
      judgeAct({ engine, watch, ids, by, action: 'undo', from: ['discarded'], to: 'dead_letter' }, () =>
        desk.undiscard(ids, by),
      ),
    remove: (ids, by, options) =>
      judgeAct({ engine, watch, ids, by, action: 'purge', from: removable, to: null }, () =>
        desk.remove(ids, by, options),
      ),
    note: async (note) => {
      await answered(watch, 'a note', () => desk.note(note))
      const [entry] = await desk.audit({ limit: 1 })
      const { action, who, reason, subject, before, after } = note
      const found = entry && { action: entry.action, who: entry.who, reason: entry.reason, subject: entry.subject }
      watch.same(note.jobId, `the note '${action}'`, found, { action, who, reason, subject })
      watch.same(note.jobId, `what the note '${action}' says`, [entry?.before, entry?.after], [before, after])
    },
  }
  return replaced(desk, new Map<PropertyKey, unknown>(Object.entries(acts)))
}
