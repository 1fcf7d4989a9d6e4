/** The same object with some members replaced. Methods keep their own `this`, because engines have private fields. */
export function replaced<T extends object>(target: T, changes: ReadonlyMap<PropertyKey, unknown>): T {
  return new Proxy(target, {
    get(original, name) {
      if (changes.has(name)) return changes.get(name)
      const value: unknown = Reflect.get(original, name, original)
      return typeof value === 'function' ? value.bind(original) : value
    },
  })
}
