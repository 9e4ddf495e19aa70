import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes } from "node:crypto";
import { DecryptionError } from "./errors.js";

/**
 * Bytes at rest (DESIGN §4): AES-256-GCM under a data key per tenant, which is itself wrapped by the key in
 * `COUNTERSIGN_ENCRYPTION_KEY`. Associated data binds every ciphertext to its tenant, table and id, so that one can't be
 * moved to another row. Layout: version (1) · iv (12) · tag (16) · ciphertext.
 */
const version = 1;
const ivLength = 12;
const tagLength = 16;

function seal(key: Buffer, plain: Uint8Array, associated: string): Buffer {
  const iv = randomBytes(ivLength);
  const cipher = createCipheriv("aes-256-gcm", key, iv);
  cipher.setAAD(Buffer.from(associated));
  const body = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([Buffer.from([version]), iv, cipher.getAuthTag(), body]);
}

function open(key: Buffer, sealed: Uint8Array, associated: string): Buffer {
  const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
  if (bytes.length < 1 + ivLength + tagLength || bytes[0] !== version) {
    throw new DecryptionError("stored bytes are not in a known encrypted form");
  }
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(1, 1 + ivLength));
  decipher.setAAD(Buffer.from(associated));
  decipher.setAuthTag(bytes.subarray(1 + ivLength, 1 + ivLength + tagLength));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(1 + ivLength + tagLength)), decipher.final()]);
  } catch (cause) {
    throw new DecryptionError("stored bytes do not open with this encryption key", { cause });
  }
}

/** A tenant's own key, unwrapped; held in memory only. */
export class TenantKey {
  readonly #key: Buffer;
  readonly #blindKey: Buffer;
  readonly keyId: string;

  constructor(key: Buffer, keyId: string) {
    this.#key = key;
    this.#blindKey = Buffer.from(hkdfSync("sha256", key, "", "countersign blind index", 32));
    this.keyId = keyId;
  }

  /**
   * A value as an index may hold it: equal values of one kind have equal tokens (32 bytes), and nobody without the key
   * learns the value from one, nor whether two tenants hold the same.
   */
  blind(kind: string, value: string): Buffer {
    return createHmac("sha256", this.#blindKey).update(`${kind}\0${value}`).digest();
  }

  /** `associated` is tenant, table and id of the row, e.g. `acme/document/<sha256>`. */
  seal(plain: Uint8Array, associated: string): Buffer {
    return seal(this.#key, plain, associated);
  }

  /** Throws {@link DecryptionError} when the bytes, the key or the row are not those that were sealed. */
  open(sealed: Uint8Array, associated: string): Buffer {
    return open(this.#key, sealed, associated);
  }
}

/** Wraps and unwraps tenants' data keys under the key of the environment. */
export class Keyring {
  readonly #master: Buffer;
  /** First 8 hex digits of the key's own digest: tells keys apart without telling the key. */
  readonly keyId: string;

  /** 32 bytes, or their base64. */
  constructor(masterKey: string | Uint8Array) {
    const key = typeof masterKey === "string" ? Buffer.from(masterKey, "base64") : Buffer.from(masterKey);
    if (key.length !== 32) throw new DecryptionError("COUNTERSIGN_ENCRYPTION_KEY must be 32 bytes in base64");
    this.#master = key;
    this.keyId = createHash("sha256").update("countersign key id").update(key).digest("hex").slice(0, 8);
  }

  /** A key for one purpose (32 bytes), the same for everybody who holds the key of the environment. */
  derive(purpose: string): Buffer {
    return Buffer.from(hkdfSync("sha256", this.#master, "", `countersign ${purpose}`, 32));
  }

  newWrappedKey(tenantId: string): { wrapped: Buffer; keyId: string } {
    return { wrapped: seal(this.#master, randomBytes(32), `${tenantId}/tenant/data_key`), keyId: this.keyId };
  }

  unwrap(tenantId: string, wrapped: Uint8Array, keyId: string): TenantKey {
    if (keyId !== this.keyId) {
      throw new DecryptionError(
        `tenant ${tenantId} was encrypted under key ${keyId}, COUNTERSIGN_ENCRYPTION_KEY is key ${this.keyId}: start with the key it was created with`,
      );
    }
    return new TenantKey(open(this.#master, wrapped, `${tenantId}/tenant/data_key`), keyId);
  }
}
