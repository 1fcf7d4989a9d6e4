import { useState } from 'preact/hooks'
import { hasFacet, useApi, useSession } from '../../api/context.ts'
import type { ShownType } from '../../api/shapes.ts'
import { useAct } from '../../api/use-act.ts'
import { ActDialog } from '../../parts/act-dialog.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { ActButton, ReasonField, TextField } from '../../parts/fields.tsx'
import { duration } from '../../parts/format.ts'
import { Card } from '../../parts/page.tsx'
import { ErrorState } from '../../parts/states.tsx'
import { Ago } from '../../parts/time.tsx'
import { useToast } from '../../parts/toast.tsx'
import { FactList } from './fact-list.tsx'

type Rate = { readonly max: number; readonly perMs: number } | null
type Ends = { readonly onClose: () => void; readonly onDone: () => void }

const NONE = 'none'

function rateText(rate: Rate): string {
  return rate === null ? NONE : `${rate.max} in ${duration(rate.perMs)}`
}

/** What holds now, and what the definition says where that is something else. */
function bothText(set: string | null, defined: string | null): string {
  if (set === null) return defined ?? 'as its definition says'
  return defined === null || defined === set ? set : `${set}, defined: ${defined}`
}

/** Of one worker, or over all of them where the definition says so. */
export function concurrencyText({ override, definition }: ShownType): string {
  const set = override?.concurrency
  const shared = definition?.slots ?? null
  const own = shared?.max ?? definition?.concurrency ?? null
  const defined = definition === null ? null : (own?.toString() ?? NONE)
  const text = bothText(set === undefined ? null : (set?.toString() ?? NONE), defined)
  if (shared === null) return `${text} (in each worker)`
  return `${text} (over all workers${shared.by === 'tenant' ? ', for each tenant' : ''})`
}

export function limitText({ override, definition }: ShownType): string {
  const set = override?.limit
  return bothText(set === undefined ? null : rateText(set), definition === null ? null : rateText(definition.limit))
}

interface LimitsCardProps {
  readonly type: ShownType
  readonly edit: () => void
  readonly reset: () => void
}

export function LimitsCard({ type, edit, reset }: LimitsCardProps) {
  const session = useSession()
  const { override } = type
  const facts = [
    ['Concurrency', concurrencyText(type)],
    ['Starts', limitText(type)],
  ] as const
  return (
    <Card title="Limits">
      <FactList facts={facts} />
      {override !== null && (
        <p class="quiet">
          Changed <Ago atMs={override.sinceMs} /> by {override.who}
          {override.reason !== '' && `: ${override.reason}`}
        </p>
      )}
      {hasFacet(session, 'limiting') ? (
        <div class="actions">
          <ActButton needs="operator" look="small" onClick={edit}>
            Change limits
          </ActButton>
          {override !== null && (
            <ActButton icon="undo" needs="operator" look="small" onClick={reset}>
              Reset limits
            </ActButton>
          )}
        </div>
      ) : (
        <p class="quiet">This engine cannot change limits while workers run.</p>
      )}
    </Card>
  )
}

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const

/** A field that is left empty is not changed. */
function readRate(max: string, per: string): Rate | undefined {
  const [, number, unit] = /^(\d+)(ms|s|m|h)$/.exec(per.trim()) ?? []
  const factor = Object.entries(UNITS).find(([name]) => name === unit)?.[1]
  if (max.trim() === '' || number === undefined || factor === undefined) return undefined
  return { max: Number(max), perMs: Number(number) * factor }
}

export function EditLimits({ type, onClose, onDone }: Ends & { readonly type: ShownType }) {
  const api = useApi()
  const toast = useToast()
  const session = useSession()
  const hasRates = session.capabilities.limits !== 'refused'
  const now = { concurrency: type.override?.concurrency ?? null, limit: type.override?.limit ?? null }
  const [concurrency, setConcurrency] = useState(now.concurrency?.toString() ?? '')
  const [max, setMax] = useState(now.limit?.max.toString() ?? '')
  const [per, setPer] = useState(now.limit === null ? '1s' : `${now.limit.perMs}ms`)
  const [reason, setReason] = useState('')
  const limit = readRate(max, per)
  const isRateWrong = max.trim() !== '' && limit === undefined
  const isEmpty = concurrency.trim() === '' && limit === undefined
  const why = reason.trim() === '' ? {} : { reason: reason.trim() }
  const act = useAct(() =>
    api.call('setLimits', {
      params: { type: type.type },
      body: {
        ...(concurrency.trim() !== '' && { concurrency: Number(concurrency) }),
        ...(limit !== undefined && { limit }),
        ...why,
      },
    }),
  )
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    if ((await act.run()) === null) return
    toast({ text: `Limits of ${type.type} changed` })
    onDone()
  }
  return (
    <Dialog title={`Limits of ${type.type}`} onClose={onClose}>
      <form onSubmit={submit}>
        <p>
          Every worker takes them up within two seconds. They hold instead of the definition's, also after a deploy,
          until they are reset. What is left empty stays as it is.
        </p>
        <TextField
          label="Concurrency"
          type="number"
          min="1"
          step="1"
          value={concurrency}
          onInput={setConcurrency}
          hint={`Now: ${concurrencyText(type)}`}
        />
        {hasRates ? (
          <>
            <TextField
              label="Starts at most"
              type="number"
              min="1"
              step="1"
              value={max}
              onInput={setMax}
              hint={`Now: ${limitText(type)}`}
            />
            <TextField
              label="In every"
              value={per}
              onInput={setPer}
              placeholder="1s, 5m, 1h"
              issues={isRateWrong ? [{ path: 'limit', message: 'Give a duration such as 500ms, 1s, 5m or 1h.' }] : []}
            />
          </>
        ) : (
          <p class="quiet">This engine cannot hold a rate limit over all workers.</p>
        )}
        <ReasonField value={reason} onInput={setReason} required={false} />
        {act.problem !== null && <ErrorState problem={act.problem} />}
        <div class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            Back
          </button>
          <button type="submit" class="button primary" disabled={act.isBusy || isEmpty || isRateWrong}>
            Change
          </button>
        </div>
      </form>
    </Dialog>
  )
}

export function ResetLimits({ type: { type }, onClose, onDone }: Ends & { readonly type: ShownType }) {
  const api = useApi()
  const toast = useToast()
  return (
    <ActDialog<unknown>
      title={`Reset the limits of ${type}?`}
      verb="Reset"
      act={(reason) => api.call('resetLimits', { params: { type }, body: { ...(reason !== undefined && { reason }) } })}
      onDone={() => {
        toast({ text: `${type} has the limits of its definition` })
        onDone()
      }}
      onClose={onClose}
    >
      <p>The limits of the definition hold again, in every worker within two seconds.</p>
    </ActDialog>
  )
}
