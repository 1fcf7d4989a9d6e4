/** What a raw terminal sends for Ctrl-C, which it no longer turns into a signal. */
const CTRL_C = '\u0003'

/** Calls `quit` when q or Ctrl-C is pressed. Without a keyboard there is nothing to listen to. Returns the end of it. */
export function onQuitKey(keyboard: NodeJS.ReadStream, quit: () => void): () => void {
  if (keyboard.isTTY !== true) return () => {}
  const listener = (typed: Buffer): void => {
    if (/q/i.test(String(typed)) || String(typed).includes(CTRL_C)) quit()
  }
  keyboard.setRawMode(true)
  keyboard.on('data', listener)
  keyboard.resume()
  return () => {
    keyboard.off('data', listener)
    keyboard.setRawMode(false)
    keyboard.pause()
  }
}
