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

/** Causes first: a thousand dead letters are mostly three problems. */
export function Groups({ groups, scanned, complete, chosen, act }: GroupsProps) {
  if (groups.length === 0) return null
  const shown =
    chosen.fingerprint === undefined ? groups : groups.filter((one) => one.fingerprint === chosen.fingerprint)
  const most = Math.max(...groups.map(({ count }) => count))
  return (
    <Card
      title="By cause"
      aside={complete ? undefined : <span class="quiet">the newest {whole(scanned)} are grouped</span>}
      look="flush"
    >
      <ul class="groups">
        {shown.map((group) => (
          <li key={`${group.type} ${group.fingerprint}`}>
            <Group group={group} share={group.count / most} act={act} />
          </li>
        ))}
      </ul>
    </Card>
  )
}

interface GroupProps {
  readonly group: LetterGroup
  readonly share: number
  readonly act: GroupsProps['act']
}

function Group({ group, share, act }: GroupProps) {
  const { type, fingerprint, count, error, oldestAtMs, newestAtMs } = group
  const selection = { type, fingerprint }
  return (
    <div class="group">
      <div class="group-count">
        <strong class="figures">{whole(count)}</strong>
        <meter min={0} max={1} value={share} aria-label={`${count} of this cause`} />
      </div>
      <div class="group-text">
        <a href={routeTo('dead-letters', null, selection)}>{error}</a>
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
          label={`Replay all ${count} of this cause`}
          onClick={() => act('replay', selection)}
        >
          Replay
        </ActButton>
        <ActButton
          icon="bin"
          needs="operator"
          look="small"
          label={`Discard all ${count} of this cause`}
          onClick={() => act('discard', selection)}
        >
          Discard
        </ActButton>
      </div>
    </div>
  )
}
