import { useRef, useState } from 'preact/hooks'
import { useApi } from '../../api/context.ts'
import type { Operation } from '../../api/shapes.ts'
import { useAnswer } from '../../api/use-answer.ts'
import { useFresh, useStream } from '../../live/context.ts'
import { nowMs } from '../../parts/clock.ts'
import { ActButton } from '../../parts/fields.tsx'
import { whole } from '../../parts/format.ts'
import { ProgressBar } from '../../parts/progress.tsx'
import { useToast } from '../../parts/toast.tsx'
import { Refusals } from './bulk-dialog.tsx'

const KEPT_MS = 120_000

export interface FollowedOperations {
  readonly shown: readonly Operation[]
  /** The ids of a discard started here, for undo. */
  readonly undoable: (id: string) => readonly string[]
  readonly follow: (operation: Operation, ids: readonly string[]) => void
  readonly dismiss: (id: string) => void
  readonly onChange: () => void
}

type Kind = Operation['kind']

/** Running bulk operations of all users, and those that have just ended: of all kinds, or of some. */
export function useOperations(onEnded: () => void, kinds?: readonly Kind[]): FollowedOperations {
  const listed = useAnswer('listOperations', {})
  const [heard, setHeard] = useState<ReadonlyMap<string, Operation>>(new Map())
  const [dismissed, setDismissed] = useState<ReadonlySet<string>>(new Set())
  const ids = useRef(new Map<string, readonly string[]>())
  const take = (operation: Operation): void => {
    // The stream may report the end of a short operation before its request is answered.
    setHeard((all) => (isNewer(operation, all.get(operation.id)) ? new Map(all).set(operation.id, operation) : all))
    if (operation.status !== 'running') onEnded()
  }
  useStream('operation', take)
  const all = new Map((listed.value?.operations ?? []).map((one) => [one.id, one]))
  for (const [id, operation] of heard) if (isNewer(operation, all.get(id))) all.set(id, operation)
  const isRunning = [...all.values()].some(({ status }) => status === 'running')
  useFresh(listed.reload, { on: [], everyMs: isRunning ? 2_000 : null })
  const oldestMs = nowMs() - KEPT_MS
  return {
    shown: [...all.values()].filter(
      ({ id, kind, endedAtMs }) =>
        (kinds?.includes(kind) ?? true) && !dismissed.has(id) && (endedAtMs ?? Infinity) > oldestMs,
    ),
    undoable: (id) => ids.current.get(id) ?? [],
    follow: (operation, own) => {
      ids.current.set(operation.id, own)
      take(operation)
    },
    dismiss: (id) => setDismissed((before) => new Set(before).add(id)),
    onChange: onEnded,
  }
}

/** Operations only advance: of two states, the one that is further is the newer. */
function isNewer(one: Operation, other: Operation | undefined): boolean {
  if (other === undefined || one.endedAtMs !== null) return true
  return other.endedAtMs === null && one.progress.seen >= other.progress.seen
}

export function Operations({ operations }: { readonly operations: FollowedOperations }) {
  if (operations.shown.length === 0) return null
  return (
    <section class="operations" aria-label="Bulk operations">
      {operations.shown.map((operation) => (
        <OperationRow key={operation.id} operation={operation} operations={operations} />
      ))}
    </section>
  )
}

const DOING = {
  replay: 'Replaying',
  discard: 'Discarding',
  purge: 'Purging',
  erase: 'Erasing',
  drain: 'Draining',
  obliterate: 'Obliterating',
} as const
const DONE = {
  replay: 'Replayed',
  discard: 'Discarded',
  purge: 'Purged',
  erase: 'Erased',
  drain: 'Drained',
  obliterate: 'Obliterated',
} as const

function statusText({ kind, status, progress, error }: Operation): string {
  switch (status) {
    case 'running':
      return `${DOING[kind]}…`
    case 'done':
      return `${DONE[kind]} ${whole(progress.done)}.`
    case 'stopped':
      return `Stopped after ${whole(progress.done)}. What is done stays done.`
    case 'failed':
      return `Failed after ${whole(progress.done)}: ${error ?? 'the server does not say why'}`
    default:
      return status satisfies never
  }
}

interface OperationRowProps {
  readonly operation: Operation
  readonly operations: FollowedOperations
}

function OperationRow({ operation, operations }: OperationRowProps) {
  const { status, progress, kind, who, reason } = operation
  const tone = status === 'failed' ? 'bad' : status === 'running' ? 'run' : 'good'
  const undoable = status === 'done' && kind === 'discard' ? operations.undoable(operation.id) : []
  return (
    <div class={`card edged operation tone-${tone}`}>
      <div class="operation-text">
        <p role="status">
          <strong>{statusText(operation)}</strong>{' '}
          <span class="quiet">
            {who}
            {reason !== '' && `: ${reason}`}
          </span>
        </p>
        {status === 'running' && <Bar progress={progress} />}
        <Refusals refused={progress.refused} />
      </div>
      <div class="actions">
        {status === 'running' && <Stop operation={operation} onStopped={operations.onChange} />}
        {undoable.length > 0 && <Undo ids={undoable} onDone={() => finish(operation, operations)} />}
        {status !== 'running' && (
          <button type="button" class="button small" onClick={() => operations.dismiss(operation.id)}>
            Dismiss
          </button>
        )}
      </div>
    </div>
  )
}

function finish(operation: Operation, operations: FollowedOperations): void {
  operations.dismiss(operation.id)
  operations.onChange()
}

function Bar({ progress }: { readonly progress: Operation['progress'] }) {
  const { seen, done, total } = progress
  const text = total === null ? `${whole(done)} done` : `${whole(done)} of ${whole(total)}`
  return <ProgressBar percent={total ? (seen / total) * 100 : 0} text={text} label="Progress of the operation" />
}

function Stop({ operation, onStopped }: { readonly operation: Operation; readonly onStopped: () => void }) {
  const api = useApi()
  const toast = useToast()
  const stop = async (): Promise<void> => {
    const result = await api.call('stopOperation', { params: { id: operation.id } })
    if (!result.ok) toast({ text: result.problem.message, tone: 'bad' })
    onStopped()
  }
  return (
    <ActButton needs="operator" look="small" onClick={() => void stop()}>
      Stop
    </ActButton>
  )
}

function Undo({ ids, onDone }: { readonly ids: readonly string[]; readonly onDone: () => void }) {
  const api = useApi()
  const toast = useToast()
  const [isBusy, setBusy] = useState(false)
  const undo = async (): Promise<void> => {
    setBusy(true)
    let undone = 0
    for (const id of ids) {
      const result = await api.call('undoDiscard', { params: { id }, body: {} })
      if (result.ok) undone += 1
    }
    toast({ text: `${whole(undone)} of ${whole(ids.length)} are dead letters again` })
    onDone()
  }
  return (
    <ActButton icon="undo" needs="operator" look="small" disabled={isBusy} onClick={() => void undo()}>
      Undo
    </ActButton>
  )
}
