package kallscope

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// PlanSchema is the name and version of the JSON form of a plan.
const PlanSchema = "kallscope.plan/1"

type planJSON struct {
	Schema string `json:"schema"`
	*Plan
}

// Encode writes the plan as one JSON object. Equal plans give equal bytes.
func (p *Plan) Encode(w io.Writer) error {
	if err := json.NewEncoder(w).Encode(planJSON{PlanSchema, p}); err != nil {
		return fmt.Errorf("encode plan: %w", err)
	}
	return nil
}

// DecodePlan reads what [Plan.Encode] wrote. It fails on another schema, on
// fields it does not know, and on bytes behind the plan.
func DecodePlan(r io.Reader) (*Plan, error) {
	j := planJSON{Plan: new(Plan)}
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&j); err != nil {
		return nil, fmt.Errorf("decode plan: byte %d: %w", dec.InputOffset(), err)
	}
	if j.Schema != PlanSchema {
		return nil, fmt.Errorf("decode plan: schema %q, want %q: it was made by another version", j.Schema, PlanSchema)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("decode plan: byte %d: more than one plan", dec.InputOffset())
	}
	return j.Plan, nil
}

// strictUnmarshal is json.Unmarshal that fails on unknown fields.
func strictUnmarshal(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}

type targetJSON struct {
	funcJSON
	Mechanism  Mechanism    `json:"mechanism"`
	Mechanisms MechanismSet `json:"mechanisms,omitzero"`
	Offset     uint32       `json:"offset,omitempty"`
}

// MarshalJSON writes the function, the mechanism or mechanisms, and the offset.
func (t Target) MarshalJSON() ([]byte, error) {
	return json.Marshal(targetJSON{t.json(), t.Mechanism, t.Mechanisms, t.Offset})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Target) UnmarshalJSON(data []byte) error {
	var j targetJSON
	if err := strictUnmarshal(data, &j); err != nil {
		return err
	}
	if j.Mechanism == MechanismAuto {
		return fmt.Errorf("target %s has no mechanism", j.Name)
	}
	*t = Target{j.fn(), j.Mechanism, j.Mechanisms, j.Offset}
	return nil
}

type skipJSON struct {
	funcJSON
	Reason     Reason       `json:"reason"`
	Mechanisms MechanismSet `json:"mechanisms,omitzero"`
}

// MarshalJSON writes the function, the reason and the mechanisms.
func (s Skip) MarshalJSON() ([]byte, error) {
	return json.Marshal(skipJSON{s.json(), s.Reason, s.Mechanisms})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Skip) UnmarshalJSON(data []byte) error {
	var j skipJSON
	err := strictUnmarshal(data, &j)
	*s = Skip{j.fn(), j.Reason, j.Mechanisms}
	return err
}
