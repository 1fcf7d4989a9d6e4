import type { Admin } from './driver.ts'

/** By name, as Kafka writes them. */
export type Settings = ReadonlyMap<string, string>

/** By the name of the topic or the number of the broker. */
export async function configsOf(
  admin: Admin,
  resourceType: Parameters<Admin['describeConfigs']>[0]['resources'][number]['resourceType'],
  names: readonly string[],
  configurationKeys: readonly string[],
): Promise<ReadonlyMap<string, Settings>> {
  if (names.length === 0) return new Map()
  const described = await admin.describeConfigs({
    resources: names.map((resourceName) => ({
      resourceType,
      resourceName,
      configurationKeys: [...configurationKeys],
    })),
  })
  return new Map(
    described.map(({ resourceName, configs }) => [
      resourceName,
      new Map(configs.map(({ name, value }) => [name, value ?? ''])),
    ]),
  )
}

/** Null where it is not set, or the broker does not say. */
export function numberOf(settings: Settings, name: string): number | null {
  const text = settings.get(name)
  const value = Number(text)
  return text === undefined || text === '' || Number.isNaN(value) ? null : value
}
