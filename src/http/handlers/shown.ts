/** What a handler may answer with: the same shape, and nobody changes it any more. */
export type Shown<T> = T extends readonly (infer Item)[]
  ? readonly Shown<Item>[]
  : T extends object
    ? { readonly [Name in keyof T]: Shown<T[Name]> }
    : T

type WithoutUndefined<T> = { [Name in keyof T]: Exclude<T[Name], undefined> }

/** The same without what was not given: a schema says `undefined` where an option must be left out. */
export function given<T extends object>(options: T): WithoutUndefined<T> {
  // Exactly the undefined values are gone, which is what the type says.
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as WithoutUndefined<T>
}
