/**
 * Tells the other tabs of this dashboard that somebody has logged in or out. The message has nothing in it: the cookie is
 * shared, and each tab asks the server what it may do.
 */
export class OtherTabs {
  readonly #channel: BroadcastChannel

  /** @param root Where the page is mounted: two dashboards of one origin do not mix. */
  constructor(root: string, onChange: () => void) {
    this.#channel = new BroadcastChannel(`millrace-login ${root}`)
    this.#channel.addEventListener('message', onChange)
  }

  tell(): void {
    this.#channel.postMessage(null)
  }

  close(): void {
    this.#channel.close()
  }
}
