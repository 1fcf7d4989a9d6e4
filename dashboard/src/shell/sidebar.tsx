import { useEffect, useState } from 'preact/hooks'
import { mayAct, useAccess } from '../api/context.ts'
import { useLiveState } from '../live/context.ts'
import type { LiveState } from '../live/live.ts'
import { brief } from '../parts/format.ts'
import { Icon, type IconName, Wheel } from '../parts/icon.tsx'
import { applyTheme, readTheme, type Theme } from '../parts/theme.ts'
import { Exact } from '../parts/time.tsx'
import { type Page, routeTo } from '../router/route.ts'
import type { Place } from './navigation.ts'
import { totalCounts, useOverview } from './overview-context.ts'

const LIVE_TEXT: Readonly<Record<LiveState, string>> = {
  connecting: 'Connecting…',
  live: 'Live',
  waiting: 'Reconnecting…',
  resting: 'Paused',
}

export function LiveMark() {
  const state = useLiveState()
  return (
    <span class={`live live-${state}`} role="status" title="Whether this page receives changes live">
      <span class="live-dot" />
      {LIVE_TEXT[state]}
    </span>
  )
}

function useCallouts(): Readonly<Partial<Record<Page, number>>> {
  const overview = useOverview()
  return { 'dead-letters': totalCounts(overview).dead, alerts: overview?.alertsFiring ?? 0 }
}

interface SidebarProps {
  readonly places: readonly Place[]
  readonly current: Page | null
  readonly onHelp: () => void
  /** To make a read-only link. */
  readonly onLink: () => void
}

export function Sidebar({ places, current, onHelp, onLink }: SidebarProps) {
  const [isOpen, setOpen] = useState(false)
  const callouts = useCallouts()
  // After navigation the menu closes.
  useEffect(() => setOpen(false), [current])
  return (
    <header class={`sidebar ${isOpen ? 'open' : ''}`}>
      <SkipLink />
      <div class="sidebar-top">
        <a class="brand" href={routeTo('overview')}>
          <Wheel />
          Millrace
        </a>
        <LiveMark />
        <button
          type="button"
          class="icon-button menu-button"
          aria-label="Menu"
          aria-expanded={isOpen}
          aria-controls="navigation"
          onClick={() => setOpen(!isOpen)}
        >
          <Icon name={isOpen ? 'cross' : 'menu'} />
        </button>
      </div>
      <div class="sidebar-rest" id="navigation">
        <nav aria-label="Pages of the dashboard">
          <ul class="nav">
            {places.map((place) => (
              <NavItem key={place.page} place={place} isCurrent={place.page === current} count={callouts[place.page]} />
            ))}
          </ul>
        </nav>
        <SidebarFoot onHelp={onHelp} onLink={onLink} />
      </div>
    </header>
  )
}

/** Skips the navigation, for keyboard users. */
function SkipLink() {
  return (
    <a
      class="skip"
      href={routeTo('overview')}
      onClick={(event) => {
        event.preventDefault()
        document.querySelector<HTMLElement>('main')?.focus()
      }}
    >
      Skip to the content
    </a>
  )
}

interface NavItemProps {
  readonly place: Place
  readonly isCurrent: boolean
  readonly count: number | undefined
}

function NavItem({ place, isCurrent, count = 0 }: NavItemProps) {
  return (
    <li>
      <a href={routeTo(place.page)} aria-current={isCurrent ? 'page' : undefined} title={`g ${place.key}`}>
        <Icon name={place.icon} />
        <span>{place.title}</span>
        {count > 0 && <span class="callout figures">{brief(count)}</span>}
      </a>
    </li>
  )
}

const THEMES: readonly { readonly theme: Theme; readonly text: string; readonly icon: IconName }[] = [
  { theme: 'system', text: 'System colours', icon: 'half' },
  { theme: 'light', text: 'Light colours', icon: 'sun' },
  { theme: 'dark', text: 'Dark colours', icon: 'moon' },
]

function ThemeChoice() {
  const [chosen, setChosen] = useState(readTheme)
  return (
    <fieldset class="themes">
      <legend class="unseen">Colours</legend>
      {THEMES.map(({ theme, text, icon }) => (
        <button
          key={theme}
          type="button"
          class="icon-button"
          aria-label={text}
          title={text}
          aria-pressed={theme === chosen}
          onClick={() => {
            applyTheme(theme)
            setChosen(theme)
          }}
        >
          <Icon name={icon} />
        </button>
      ))}
    </fieldset>
  )
}

function SidebarFoot({ onHelp, onLink }: Pick<SidebarProps, 'onHelp' | 'onLink'>) {
  const { session, logOut } = useAccess()
  return (
    <div class="sidebar-foot">
      <div class="sidebar-tools">
        <ThemeChoice />
        <button
          type="button"
          class="icon-button key-button"
          aria-label="Keyboard shortcuts"
          title="Keys (?)"
          onClick={onHelp}
        >
          ?
        </button>
      </div>
      <p>
        {session.who} · {session.role}
        {!mayAct(session, 'operator') && ' (may look, not act)'}
      </p>
      {session.untilMs !== null && (
        <p>
          by a link, until <Exact atMs={session.untilMs} />
        </p>
      )}
      <p class="quiet">
        {session.engine} · v{session.version}
      </p>
      <div class="sidebar-acts">
        {session.tokens && mayAct(session, 'operator') && (
          <button type="button" class="button small" onClick={onLink}>
            Read-only link
          </button>
        )}
        {(session.by === 'login' || session.by === 'link') && (
          <button type="button" class="button small" onClick={logOut}>
            Log out
          </button>
        )}
      </div>
    </div>
  )
}
