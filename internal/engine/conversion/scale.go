// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"encoding/json"
	"math/big"
	"strconv"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// Scale is a number of the spoke that is multiplied by a factor in the hub, or divided by it.
type Scale struct {
	Factor int64 `json:"factor"`
	Divide bool  `json:"divide,omitempty"`
	// SpokeInteger and HubInteger are true for a field of type integer, and false for type number.
	SpokeInteger bool `json:"spokeInteger,omitempty"`
	HubInteger   bool `json:"hubInteger,omitempty"`
}

// image computes a number exactly: it returns nil if the other field cannot have that one.
func (s *Scale) image(r *conversionRun, x *exchange, value *tree.Node) *tree.Node {
	ofInteger, toInteger := ends(x.toHub, s.SpokeInteger, s.HubInteger)
	text, ok := canonicalNumber(value.JSON())
	if !ok || ofInteger && !isInteger(value.JSON()) {
		return nil
	}
	number, _ := new(big.Rat).SetString(string(text)) // it is canonical, so that its exponent is small
	factor := new(big.Rat).SetInt64(s.Factor)
	if x.toHub == s.Divide {
		factor.Inv(factor)
	}
	switch number.Mul(number, factor); {
	case number.IsInt() && number.Num().IsInt64():
		return r.NewScalar(number.Num().Append(nil, 10))
	case toInteger:
		return nil
	}
	float, _ := number.Float64()
	text, err := json.Marshal(float)
	if written, ok := new(big.Rat).SetString(string(text)); err != nil || !ok || written.Cmp(number) != 0 {
		return nil
	}
	return r.NewScalar(text)
}

func (s *Scale) sample(f *filler, _ *exchange, _ *tree.Node) *tree.Node {
	if s.Divide {
		return f.NewScalar(strconv.AppendInt(nil, s.Factor, 10))
	}
	return f.NewScalar([]byte("80"))
}
