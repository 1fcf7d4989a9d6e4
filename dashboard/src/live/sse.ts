/** Reads text/event-stream as it arrives, in pieces that may end anywhere. */
export interface SseEvent {
  readonly name: string
  readonly data: string
}

export class SseReader {
  #rest = ''
  #name = ''
  #data: string[] = []

  /** The events that this piece completes. */
  take(piece: string): readonly SseEvent[] {
    const lines = (this.#rest + piece).split(/\r\n|\n|\r(?!$)/)
    this.#rest = lines.pop() ?? ''
    return lines.flatMap((line) => this.#line(line))
  }

  #line(line: string): readonly SseEvent[] {
    if (line === '') return this.#end()
    const colon = line.indexOf(':')
    const field = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'event') this.#name = value
    if (field === 'data') this.#data.push(value)
    return []
  }

  #end(): readonly SseEvent[] {
    const event = { name: this.#name === '' ? 'message' : this.#name, data: this.#data.join('\n') }
    const isEmpty = this.#data.length === 0
    this.#name = ''
    this.#data = []
    return isEmpty ? [] : [event]
  }
}
