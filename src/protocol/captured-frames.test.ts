import { describe, expect, test } from 'vitest';
import { capturedFrames } from './captured-frames.test-data.ts';
import { FrameDecoder } from './frame-decoder.ts';
import { JuteReader } from './jute-reader.ts';
import { JuteWriter } from './jute-writer.ts';
import { operations, xids } from './operations.ts';
import { RequestHeader } from './records.ts';

// Recorded bytes of a real server: a round trip alone cannot see a mistake that reader and writer share.

describe.each(capturedFrames)('captured frame from the $from: $name', ({ bytes, parts }) => {
  test('is read as what it means, to its last byte', () => {
    const frames = new FrameDecoder(1024).push(bytes);
    expect(frames).toHaveLength(1);
    const input = new JuteReader(frames[0]!);
    for (const { codec, value } of parts) expect(codec.read(input)).toStrictEqual(value);
    expect(input.remaining).toBe(0);
  });

  test('is written as the same bytes', () => {
    const out = new JuteWriter();
    const mark = out.beginFrame();
    for (const { codec, value } of parts) codec.write(out, value);
    expect(out.endFrame(mark)).toBe(bytes.byteLength - 4);
    expect(out.take().toString('hex')).toBe(bytes.toString('hex'));
  });
});

test('a setWatches header of the C client is read as an xid of its own', () => {
  const input = new JuteReader(Buffer.from('fffffff800000065', 'hex'));
  expect(RequestHeader.read(input)).toStrictEqual({
    xid: xids.setWatchesOfCClient,
    type: operations.setWatches.opcode,
  });
});
