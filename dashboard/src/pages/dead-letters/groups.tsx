import type { Answer, LetterGroup, Routes } from '../../api/shapes.ts'
import { ActButton } from '../../parts/fields.tsx'
import { whole } from '../../parts/format.ts'
import { Card } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { routeTo } from '../../router/route.ts'
import type { BulkKind } from './bulk-dialog.tsx'
import type { LetterFilter, Selection } from './selection-words.ts'

type GroupsProps = Answer<Routes['groupDeadLetters']> & {
  readonly chosen: LetterFilter
  readonly act: (kind: BulkKind, selection: Selection) => void
}

/** By cause: a thousand dead letters are usually three problems. */
export function Groups({ groups, scanned, complete, countedAtMs, chosen, act }: GroupsProps) {
  if (groups.length === 0) return null
  const shown =
    chosen.fingerprint === undefined ? groups : groups.filter((one) => one.fingerprint === chosen.fingerprint)
  const most = Math.max(...groups.map(({ count }) => count))
  return (
    <Card
      title="By cause"
      aside={
        <span class="quiet">
          {!complete && `only the newest ${whole(scanned)} are counted · `}
          counted <Ago atMs={countedAtMs} />
        </span>
      }
      look="flush"
    >
      <ul class="groups">
        {shown.map((group) => (
          <li key={`${group.type} ${group.fingerprint}`}>
            <Group group={group} search={chosen.search} isLeast={!complete} share={group.count / most} act={act} />
          </li>
        ))}
      </ul>
    </Card>
  )
}

interface GroupProps {
  readonly group: LetterGroup
  readonly search: string | undefined
  /** The count is a lower bound. */
  readonly isLeast: boolean
  readonly share: number
  readonly act: GroupsProps['act']
}

function Group({ group, search, isLeast, share, act }: GroupProps) {
  const { type, fingerprint, selection, error, oldestAtMs, newestAtMs } = group
  const count = `${isLeast ? 'at least ' : ''}${whole(group.count)}`
  return (
    <div class="group">
      <div class="group-count">
        <strong class="figures">{count}</strong>
        <meter min={0} max={1} value={share} aria-label={`${count} of this cause`} />
      </div>
      <div class="group-text">
        <a href={routeTo('dead-letters', null, { type, fingerprint, search })}>{error}</a>
        <p class="quiet">
          {type} · newest <Ago atMs={newestAtMs} />
          {oldestAtMs !== newestAtMs && (
            <>
              , oldest <Ago atMs={oldestAtMs} />
            </>
          )}
        </p>
      </div>
      <div class="group-acts">
        <ActButton
          icon="again"
          needs="operator"
          look="small"
          label={isLeast ? 'Replay all of this cause' : `Replay all ${count} of this cause`}
          onClick={() => act('replay', selection)}
        >
          Replay
        </ActButton>
        <ActButton
          icon="bin"
          needs="operator"
          look="small"
          label={isLeast ? 'Discard all of this cause' : `Discard all ${count} of this cause`}
          onClick={() => act('discard', selection)}
        >
          Discard
        </ActButton>
      </div>
    </div>
  )
}
