/** One element of DER: what kind it is, its content, and all of its bytes. */
interface Element {
  readonly tag: number;
  readonly content: Buffer;
  readonly bytes: Buffer;
}

const TAG = {
  objectIdentifier: 0x06,
  utf8: 0x0c,
  printable: 0x13,
  t61: 0x14,
  ia5: 0x16,
  general: 0x1b,
  bmp: 0x1e,
  sequence: 0x30,
  set: 0x31,
  /** `[0]`, which holds the version of a certificate. */
  version: 0xa0,
} as const;

/** What may be shown as text. Values of any other type are shown by their bytes. */
const TEXT_TAGS: ReadonlySet<number> = new Set([
  TAG.utf8,
  TAG.printable,
  TAG.t61,
  TAG.ia5,
  TAG.general,
  TAG.bmp,
]);

/** The attribute types that have a name in RFC 2253; any other is shown by its number. */
const KEYWORDS: Readonly<Record<string, string>> = {
  '2.5.4.3': 'CN',
  '2.5.4.6': 'C',
  '2.5.4.7': 'L',
  '2.5.4.8': 'ST',
  '2.5.4.9': 'STREET',
  '2.5.4.10': 'O',
  '2.5.4.11': 'OU',
  '0.9.2342.19200300.100.1.1': 'UID',
  '0.9.2342.19200300.100.1.25': 'DC',
};

/** Issued before the subject in a certificate: serial number, signature algorithm, issuer, validity. */
const FIELDS_BEFORE_SUBJECT = 4;

/**
 * The subject of a certificate in the form of RFC 2253, as ZooKeeper's `X509AuthenticationProvider` has it from Java's
 * `X500Principal.getName()`. Undefined for a subject that is empty or that cannot be read: it names nobody.
 *
 * Read from the certificate itself: what Node makes of a subject has lost the order of its parts and which of them
 * belong together, so that different subjects would become one principal.
 */
export function principalOfCertificate(certificate: Buffer): string | undefined {
  try {
    const [toBeSigned] = elementsOf(only(certificate, TAG.sequence));
    const fields = elementsOf(expectTag(toBeSigned, TAG.sequence));
    const skipped = (fields[0]?.tag === TAG.version ? 1 : 0) + FIELDS_BEFORE_SUBJECT;
    return principalOfName(expectTag(fields[skipped], TAG.sequence).bytes);
  } catch (error) {
    if (error instanceof DerError) return undefined;
    throw error;
  }
}

/** As `principalOfCertificate`, for the DER of an X.501 name. */
export function principalOfName(name: Buffer): string | undefined {
  try {
    const parts = elementsOf(only(name, TAG.sequence)).map((part) =>
      elementsOf(expectTag(part, TAG.set)).map(attributeText).join('+'),
    );
    return parts.length === 0 ? undefined : parts.reverse().join(',');
  } catch (error) {
    if (error instanceof DerError) return undefined;
    throw error;
  }
}

function attributeText(attribute: Element): string {
  const [type, value, ...rest] = elementsOf(expectTag(attribute, TAG.sequence));
  if (!value || rest.length > 0) throw new DerError('an attribute is a type and a value');
  const number = objectIdentifier(expectTag(type, TAG.objectIdentifier).content);
  const keyword = KEYWORDS[number];
  if (keyword === undefined || !TEXT_TAGS.has(value.tag)) {
    return `${keyword ?? number}=#${value.bytes.toString('hex')}`;
  }
  return `${keyword}=${escaped(textOf(value.content))}`;
}

/**
 * The text of a value, as UTF-8 whatever its type is, as Java reads it. Bytes that are no UTF-8 name nobody: Java shows
 * U+FFFD in their place, which makes different subjects one principal.
 */
function textOf(content: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    throw new DerError('text that is not UTF-8');
  }
}

/** A backslash before everything that has a meaning in a name, and before spaces at either end. */
function escaped(value: string): string {
  const text = value.replace(/[,=+<>#;"\\]/g, '\\$&').replaceAll('\0', '\\00');
  const lead = /^[ \r]*/.exec(text)![0].length;
  const trail = /[ \r]*$/.exec(text.slice(lead))![0].length;
  const marked = (spaces: string) => spaces.replace(/./gs, '\\$&');
  const end = text.length - trail;
  return marked(text.slice(0, lead)) + text.slice(lead, end) + marked(text.slice(end));
}

function objectIdentifier(content: Buffer): string {
  const numbers: bigint[] = [];
  let number = 0n;
  for (const byte of content) {
    number = (number << 7n) | BigInt(byte & 0x7f);
    if ((byte & 0x80) !== 0) continue;
    if (numbers.length === 0) {
      const first = number < 40n ? 0n : number < 80n ? 1n : 2n;
      numbers.push(first, number - 40n * first);
    } else numbers.push(number);
    number = 0n;
  }
  if (numbers.length === 0 || (content.at(-1)! & 0x80) !== 0) throw new DerError('an object identifier');
  return numbers.join('.');
}

// DER

/** Bytes that are not the DER that was expected. */
class DerError extends Error {
  override readonly name = 'DerError';
}

function elementsOf({ content }: Element): Element[] {
  const elements: Element[] = [];
  for (let at = 0; at < content.byteLength; at += elements.at(-1)!.bytes.byteLength)
    elements.push(elementAt(content, at));
  return elements;
}

const LONG_FORM = 0x80;
const LENGTH_BYTES_MAX = 4;

function elementAt(bytes: Buffer, at: number): Element {
  const tag = bytes[at];
  const first = bytes[at + 1];
  if (tag === undefined || first === undefined) throw new DerError('an element is cut off');
  let contentAt = at + 2;
  let contentBytes = first;
  if (first >= LONG_FORM) {
    const lengthBytes = first - LONG_FORM;
    if (lengthBytes < 1 || lengthBytes > LENGTH_BYTES_MAX || contentAt + lengthBytes > bytes.byteLength)
      throw new DerError('a length');
    contentBytes = bytes.readUIntBE(contentAt, lengthBytes);
    contentAt += lengthBytes;
  }
  const end = contentAt + contentBytes;
  if (end > bytes.byteLength) throw new DerError('an element is cut off');
  return { tag, content: bytes.subarray(contentAt, end), bytes: bytes.subarray(at, end) };
}

function only(bytes: Buffer, tag: number): Element {
  const element = elementAt(bytes, 0);
  if (element.bytes.byteLength !== bytes.byteLength) throw new DerError('bytes behind the last element');
  return expectTag(element, tag);
}

function expectTag(element: Element | undefined, tag: number): Element {
  if (element?.tag !== tag) throw new DerError(`an element of type ${element?.tag} in place of ${tag}`);
  return element;
}
