import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { progressBar } from './screen.ts'
import type { Terminal } from './terminal.ts'

function terminal(columns: number | null): Terminal & { readonly out: PassThrough } {
  const out = new PassThrough()
  return {
    out,
    columns,
    print: () => {},
    complain: () => {},
    paint: (_style, text) => text,
    flush: async () => {},
    outliveReader: () => {},
    lostReader: false,
  }
}

test('a terminal gets one line that rewrites itself and is cleared', () => {
  const shown = terminal(80)
  const bar = progressBar(shown, 'replaying')
  bar.show(1, 4)
  bar.show(7, null)
  bar.clear()
  assert.equal(
    String(shown.out.read()),
    `\r\u001b[K██████░░░░░░░░░░░░░░░░░░ 25% 1/4 replaying\r\u001b[K7 replaying\r\u001b[K`,
  )
})

test('a pipe gets nothing, and a bar that was never shown clears nothing', () => {
  const pipe = terminal(null)
  progressBar(pipe, 'replaying').show(1, 2)
  const unused = terminal(80)
  progressBar(unused, 'replaying').clear()
  assert.deepEqual([pipe.out.read(), unused.out.read()], [null, null])
})
