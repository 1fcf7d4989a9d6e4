/** The token lives as long as the tab: sessionStorage is neither shared with other tabs nor kept on the disk. */
const NAME = 'millrace-token'

export function readToken(): string | null {
  try {
    return sessionStorage.getItem(NAME)
  } catch {
    // Storage may be forbidden; the token is then asked for at the next load.
    return null
  }
}

export function keepToken(token: string | null): void {
  try {
    if (token === null) sessionStorage.removeItem(NAME)
    else sessionStorage.setItem(NAME, token)
  } catch {
    // As above.
  }
}
