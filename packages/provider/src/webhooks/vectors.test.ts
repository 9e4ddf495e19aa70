import { EventCallbackHelper, EventCallbackRequest } from "@dropbox/sign";
import { describe, expect, it } from "vitest";
import { webhookScheme } from "./registry.js";

const verify = (name: string, body: string, headers: Record<string, string>, secret: string, nowMs = 0) =>
  webhookScheme(name)?.verify(Buffer.from(body), headers, [{ secretId: "s1", secret }], nowMs);

describe("published vectors", () => {
  it("GitHub's", () => {
    const digest = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    const headers = { "X-Hub-Signature-256": `sha256=${digest}` };
    expect(verify("hmac-sha256", "Hello, World!", headers, "It's a Secret to Everybody")).toMatchObject({ ok: true });
    expect(verify("hmac-sha256", "Hello, World", headers, "It's a Secret to Everybody")).toMatchObject({ ok: false });
  });

  it.each([
    ["standard-webhooks", "webhook"],
    ["svix", "svix"],
  ])("%s: id, secret and body of its own tests", (name, prefix) => {
    const headers = {
      [`${prefix}-id`]: "msg_p5jXN8AQM9LWM0D4loKWxJek",
      [`${prefix}-timestamp`]: "1614265330",
      [`${prefix}-signature`]: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    };
    const result = verify(
      name,
      '{"test": 2432232314}',
      headers,
      "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
      1_614_265_330_000,
    );
    expect(result).toEqual({ ok: true, secretId: "s1", signedAt: 1_614_265_330_000 });
  });

  it("Zoho's, whose base64 of an HMAC over the body is DocuSign's", () => {
    const printed =
      '{{"requests":{"request_name":"Test Name"},"notifications":{"operation_type":"RequestSigningSuccess"}}';
    const headers = { "x-docusign-signature-1": "drbSrM4H816RYKpZiRBLddUa0yHaTrwjtY04sIZFZus=" };
    expect(verify("docusign", printed, headers, "thisisthesamplekeyfortestingpurposes")).toMatchObject({ ok: true });
    // With the braces that would make it JSON it is another body.
    expect(verify("docusign", printed.slice(1), headers, "thisisthesamplekeyfortestingpurposes")).toMatchObject({
      ok: false,
    });
  });

  const key = "324e3b0840f065eb51f3fd63231d0d33daa35d4ed10d27718839e81737065782";
  const metadata = {
    event_metadata: {
      related_signature_id: "ad4d8a769b555fa5ef38691465d426682bf2c992",
      reported_for_account_id: "63522885f9261e2b04eea043933ee7313eb674fd",
    },
  };
  it.each(
    [
      ["unknown_error", "c574f5d3090c2936360b4e36cf6835cf3e2206b84fdc6347e6b28ca721ae1371"],
      ["account_confirmed", "6dc5b7aad93cf54915e0089d6c31d61b3833f66f51459171c69f8fa211308848"],
      ["signature_request_sent", "08d45a6b7677492b78be030cef18cfeaece8fe67e163cc8e526ee638ad483756"],
      ["template_created", "4a9b22fa68d5addb8b6313eea9d42ecb393903a4240b71503ef78e9dac6c100d"],
    ].flatMap(([type, hash]) => [
      { type, hash, ...metadata },
      { type, hash },
    ]),
  )("Dropbox Sign's account callback $type, as its own helper verifies it: case %#", ({ type, hash, ...more }) => {
    const event = { event_time: "1348177752", event_type: type, event_hash: hash, ...more };
    const callback = { account_guid: "63522885f9261e2b04eea043933ee7313eb674fd", event };
    const reversed = [...key].reverse().join("");
    for (const secret of [key, reversed]) {
      const theirs = EventCallbackHelper.isValid(secret, EventCallbackRequest.init(callback));
      expect(verify("dropbox-sign", JSON.stringify(callback), {}, secret)?.ok).toBe(theirs);
      expect(theirs).toBe(secret === key);
    }
  });
});
