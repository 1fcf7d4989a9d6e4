import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PAGES, parseRoute, routeTo } from './route.ts'

test('no address is the overview', () => {
  for (const hash of ['', '#', '#/']) {
    assert.deepEqual(parseRoute(hash), { page: 'overview', id: null, query: {} }, hash)
  }
})

test('every page comes back from its own address', () => {
  for (const page of PAGES) assert.equal(parseRoute(routeTo(page)).page, page)
})

test('ids and filters survive, whatever signs they hold', () => {
  for (const id of ['01K5XABC', 'a/b', 'a?b=c#d', '100 %', 'schlüssel:1', '<b>']) {
    const route = parseRoute(routeTo('jobs', id, { search: id, type: 'mail.send', state: '' }))
    assert.deepEqual(route, { page: 'jobs', id, query: { search: id, type: 'mail.send' } })
  }
})

test('a broken escape is kept as it is, and an unknown page is not found', () => {
  assert.equal(parseRoute('#/jobs/100%').id, '100%')
  assert.equal(parseRoute('#/nowhere').page, null)
})
