import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { useApi, useSession } from '../api/context.ts'
import type { Overview } from '../api/shapes.ts'
import { useFresh, useStream } from '../live/context.ts'
import { hearServerTime } from '../parts/clock.ts'
import type { Route } from '../router/route.ts'
import { useRoute } from '../router/use-route.ts'
import { CurrentPage } from './current-page.tsx'
import { Help } from './help.tsx'
import { LinkDialog } from './link-dialog.tsx'
import { placesFor } from './navigation.ts'
import { OverviewContext } from './overview-context.ts'
import { Palette } from './palette.tsx'
import { useShortcuts } from './shortcuts.ts'
import { Sidebar } from './sidebar.tsx'
import { Stale } from './stale.tsx'

/** The first overview is loaded, the stream brings the others; after a gap it is loaded again. */
function useOverviewFeed(): Overview | null {
  const api = useApi()
  const [overview, setOverview] = useState<Overview | null>(null)
  const take = useCallback((next: Overview) => {
    hearServerTime(next.atMs)
    setOverview(next)
  }, [])
  const load = useCallback(async () => {
    const result = await api.call('showOverview', {})
    if (result.ok) take(result.value)
  }, [api, take])
  useEffect(() => void load(), [load])
  useStream('overview', take)
  useFresh(load, { on: [], everyMs: 15_000 })
  return overview
}

/** A new page scrolls to and focuses its heading; a filter of the same page does not. */
function useFocusOnArrival(route: Route): void {
  const place = `${route.page}/${route.id}`
  const last = useRef(place)
  useEffect(() => {
    if (last.current === place) return
    last.current = place
    scrollTo(0, 0)
    if (route.query.focus === undefined) document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true })
  }, [place, route.query.focus])
}

export function Shell() {
  const session = useSession()
  const route = useRoute()
  const overview = useOverviewFeed()
  const [isHelping, setHelping] = useState(false)
  const [isChoosing, setChoosing] = useState(false)
  const [isLinking, setLinking] = useState(false)
  const places = useMemo(() => placesFor(session), [session])
  const help = useCallback(() => setHelping(true), [])
  const choose = useCallback(() => setChoosing(true), [])
  useShortcuts({ places, onHelp: help, onPalette: choose })
  useFocusOnArrival(route)
  return (
    <OverviewContext.Provider value={overview}>
      <div class="shell">
        <Sidebar places={places} current={route.page} onHelp={help} onLink={() => setLinking(true)} />
        <main id="main" tabIndex={-1}>
          {overview !== null && <Stale atMs={overview.atMs} />}
          <CurrentPage route={route} />
        </main>
      </div>
      {isChoosing && <Palette places={places} onClose={() => setChoosing(false)} />}
      {isLinking && <LinkDialog onClose={() => setLinking(false)} />}
      {isHelping && <Help places={places} onClose={() => setHelping(false)} />}
    </OverviewContext.Provider>
  )
}
