/** What job tables add to `millrace serve --tables`. */
import type { OpenPage } from '../../../src/cli/extensions.ts'
import { connectTo } from '../connect.ts'
import { readTableSettings } from '../settings.ts'
import { placeOf } from '../shape.ts'
import { tableRoutes } from './routes.ts'

export const openPage: OpenPage = async ({ mill, clock, log, tables }) => {
  if (tables === null) return null
  const settings = readTableSettings(tables.environment)
  const { tables: names } = placeOf({ tables: tables.names })
  const { database, schema, close } = await connectTo(tables.url)
  return { routes: tableRoutes(mill, database, { tables: names, schema, settings, clock, log }), close }
}
