/**
 * The token lives as long as a tab does: sessionStorage is not kept on the disk. Tabs hand it to each other over a channel
 * that only pages of this origin can join, so a second tab does not ask for it again.
 */
const NAME = 'millrace-token'

type Message = { readonly kind: 'ask' | 'forget' } | { readonly kind: 'token'; readonly token: string }

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

/** A browser sends no other characters in a header: every request would fail as if there were no server. */
export function isSendable(token: string): boolean {
  return /^[\x21-\x7e]+$/.test(token)
}

export interface TokenListeners {
  /** Another tab has handed over its token, and this one had none. */
  readonly onToken: () => void
  /** The token was forgotten in another tab. */
  readonly onForgotten: () => void
}

/** The tabs of one dashboard. Two that are mounted on the same origin do not mix. */
export class OtherTabs {
  readonly #channel: BroadcastChannel

  constructor(root: string, listeners: TokenListeners) {
    this.#channel = new BroadcastChannel(`${NAME} ${root}`)
    this.#channel.addEventListener('message', ({ data }: MessageEvent<Message>) => this.#hear(data, listeners))
  }

  /** A tab that has a token answers it. */
  ask(): void {
    this.#tell({ kind: 'ask' })
  }

  give(token: string): void {
    this.#tell({ kind: 'token', token })
  }

  forget(): void {
    this.#tell({ kind: 'forget' })
  }

  close(): void {
    this.#channel.close()
  }

  #hear(message: Message, { onToken, onForgotten }: TokenListeners): void {
    const own = readToken()
    switch (message.kind) {
      case 'ask':
        if (own !== null) this.give(own)
        return
      case 'token':
        if (own !== null) return
        keepToken(message.token)
        onToken()
        return
      case 'forget':
        keepToken(null)
        onForgotten()
        return
      default:
        message satisfies never
    }
  }

  #tell(message: Message): void {
    this.#channel.postMessage(message)
  }
}
