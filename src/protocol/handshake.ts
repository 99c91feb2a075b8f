import { conditionOf } from './error-codes.ts';
import { ProtocolError } from './errors.ts';
import type { JuteReader } from './jute-reader.ts';
import type { Codec, ValueOf } from './record.ts';
import { ConnectRequest, ConnectResponse, ReplyHeader } from './records.ts';

export const SESSION_PASSWORD_BYTES = 16;

/** `readOnly` is null when the peer left the trailing byte out, as clients before 3.4 do. */
type WithReadOnly<T> = T & { readonly readOnly: boolean | null };

function withReadOnlyByte<T extends object>(codec: Codec<T>): Codec<WithReadOnly<T>> {
  return {
    bytesMin: codec.bytesMin,
    write(out, value) {
      codec.write(out, value);
      if (value.readOnly !== null) out.boolean(value.readOnly);
    },
    read(input: JuteReader) {
      const value = codec.read(input);
      return { ...value, readOnly: input.remaining > 0 ? input.boolean() : null };
    },
  };
}

/** The first frame of a client: it has no request header. */
export const Connect: Codec<WithReadOnly<ValueOf<typeof ConnectRequest>>> = withReadOnlyByte(ConnectRequest);

const anyAnswer = withReadOnlyByte(ConnectResponse);

/** The first frame of a server: it has no reply header. A timeOut of zero or less means the session is over. */
export const Connected: typeof anyAnswer = {
  ...anyAnswer,
  read(input) {
    // A read-only server without local sessions refuses a new one with a bare reply header (seen on 3.8).
    if (input.remaining < anyAnswer.bytesMin) {
      const bytes = input.remaining;
      const refusal = bytes === ReplyHeader.bytesMin ? `: ${conditionOf(ReplyHeader.read(input).err)}` : '';
      throw new ProtocolError(`a handshake answered with ${bytes} bytes${refusal}`);
    }
    const answer = anyAnswer.read(input);
    if (answer.timeOut > 0 && answer.passwd?.byteLength !== SESSION_PASSWORD_BYTES) {
      throw new ProtocolError(`session password of ${answer.passwd?.byteLength ?? 0} bytes`);
    }
    return answer;
  },
};
