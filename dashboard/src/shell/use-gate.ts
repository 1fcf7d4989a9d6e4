import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Api, type Problem } from '../api/client.ts'
import { OtherTabs } from '../api/other-tabs.ts'
import type { Session } from '../api/shapes.ts'
import { takeLink } from '../router/link.ts'

export type Gate =
  | { readonly at: 'knocking' }
  | { readonly at: 'shut'; readonly problem: Problem }
  | { readonly at: 'login'; readonly note: string | null }
  | { readonly at: 'open'; readonly session: Session }

const ENDED = 'You are logged out: in another tab, or because the login or the read-only link has ended.'
const LINK_REFUSED = 'This read-only link has ended, or is not from this server. Ask for a new one, or log in.'

/** Asks for the session, and for a login where one is needed. */
export function useGate(root: string) {
  const [gate, setGate] = useState<Gate>({ at: 'knocking' })
  const tabs = useRef<OtherTabs | null>(null)
  const onUnauthorized = useCallback(() => {
    setGate((now) => (now.at === 'login' ? now : { at: 'login', note: now.at === 'open' ? ENDED : null }))
  }, [])
  const api = useMemo(() => new Api({ root, onUnauthorized }), [root, onUnauthorized])
  const knock = useCallback(async (): Promise<number> => {
    const result = await api.call('showSession', {})
    if (result.ok) setGate({ at: 'open', session: result.value })
    else if (result.problem.status !== 401) setGate({ at: 'shut', problem: result.problem })
    return result.ok ? 200 : result.problem.status
  }, [api])
  const logIn = useCallback(
    async (given: { readonly token: string } | { readonly link: string }) => {
      const problem = await api.login(given)
      if (problem !== null) return problem
      tabs.current?.tell()
      await knock()
      return null
    },
    [api, knock],
  )
  /** A link is only used by one who is not logged in: it must not take rights away. */
  const arrive = useCallback(async () => {
    const link = takeLink()
    const status = await knock()
    if (status !== 401 || link === null) return
    const problem = await logIn({ link })
    if (problem !== null) setGate({ at: 'login', note: problem.status === 401 ? LINK_REFUSED : problem.message })
  }, [knock, logIn])
  useEffect(() => {
    const others = new OtherTabs(root, () => void knock())
    tabs.current = others
    void arrive()
    return () => others.close()
  }, [root, knock, arrive])
  useFollowedLink(arrive)
  const logOut = useCallback(async () => {
    await api.logout()
    tabs.current?.tell()
    setGate({ at: 'knocking' })
    await knock()
  }, [api, knock])
  return { gate, api, knock, logIn, logOut }
}

/** A link that is put into the address of an open page does not load it again. */
function useFollowedLink(arrive: () => Promise<void>): void {
  useEffect(() => {
    const onChange = (): void => void (location.hash.includes('link=') && arrive())
    addEventListener('hashchange', onChange)
    return () => removeEventListener('hashchange', onChange)
  }, [arrive])
}
