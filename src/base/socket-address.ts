/** A unix socket as an address in text: `unix:/path`, with the marks that separate addresses escaped. */
export function socketAddress(path: string): string {
  return `unix:${path.replaceAll(/[%,:]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`)}`;
}
