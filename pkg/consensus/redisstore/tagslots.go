package redisstore

import (
	"encoding/binary"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// tagClaimBytes is the size of one claim of a row; see lua/tagclaims.lua.
const tagClaimBytes = 20

// tagSlotsArg packs the slots of tags in the format of the script.
func tagSlotsArg(slots []driver.TagSlots) string {
	var b []byte
	for _, s := range slots {
		b = binary.BigEndian.AppendUint64(b, s.Key)
		for _, n := range []int64{s.InUse, s.Wanted, s.Demand, s.Total} {
			b = binary.BigEndian.AppendUint32(b, uint32(n))
		}
	}
	return string(b)
}

// parseTagClaims reads the claims of a row.
func parseTagClaims(packed string) ([]driver.TagClaim, error) {
	if packed == "" || len(packed)%tagClaimBytes != 0 {
		return nil, wrongAnswer("the slots of tags have %d bytes", len(packed))
	}
	claims := make([]driver.TagClaim, len(packed)/tagClaimBytes)
	for i := range claims {
		b := []byte(packed[i*tagClaimBytes:][:tagClaimBytes])
		number := func(at int) int64 { return int64(binary.BigEndian.Uint32(b[at:])) }
		claims[i] = driver.TagClaim{Key: binary.BigEndian.Uint64(b), InUse: number(8), Granted: number(12), Demand: number(16)}
	}
	return claims, driver.CheckTagClaims(claims)
}

// parseTagGrants reads what is granted of the tags that the request names.
func parseTagGrants(part any, req *driver.Request) (grants []driver.TagGrant, err error) {
	packed, ok := part.(string)
	if !ok {
		return nil, wrongAnswer("the slots granted are not a string")
	}
	r := numberReader{packed: packed}
	for _, s := range req.TagSlots {
		grants = append(grants, driver.TagGrant{Key: s.Key, Granted: r.number(), Claimed: r.number(), Demand: r.number()})
	}
	if r.faulty || r.packed != "" {
		return nil, wrongAnswer("the slots granted are malformed")
	}
	return grants, nil
}
