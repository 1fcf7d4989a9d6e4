import { useEffect, useState } from 'preact/hooks'
import { parseRoute, type Route } from './route.ts'

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash)
  useEffect(() => {
    const onChange = (): void => setHash(location.hash)
    addEventListener('hashchange', onChange)
    return () => removeEventListener('hashchange', onChange)
  }, [])
  return parseRoute(hash)
}

export function goTo(address: string): void {
  location.hash = address
}

/** Changes the address without a new history entry, for filters while typing. */
export function replaceRoute(address: string): void {
  history.replaceState(null, '', address)
  dispatchEvent(new HashChangeEvent('hashchange'))
}
