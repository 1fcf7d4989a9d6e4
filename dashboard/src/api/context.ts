import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Api } from './client.ts'
import type { Facet, Role, Session } from './shapes.ts'

export interface Access {
  readonly api: Api
  readonly session: Session
  /** Ends the login in all tabs of this browser. */
  readonly logOut: () => void
}

export const AccessContext = createContext<Access | null>(null)

export function useAccess(): Access {
  const access = useContext(AccessContext)
  if (access === null) throw new Error('a page was drawn without a session')
  return access
}

export const useApi = (): Api => useAccess().api
export const useSession = (): Session => useAccess().session

const RANK: Readonly<Record<Role, number>> = { viewer: 0, operator: 1, admin: 2 }

export function mayAct(session: Session, role: Role): boolean {
  return RANK[session.role] >= RANK[role]
}

export function hasFacet(session: Session, facet: Facet): boolean {
  return session.facets[facet] === true
}
