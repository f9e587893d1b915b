// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"slices"
	"strings"
)

// Severity of a Finding.
type Severity string

// The severities, the worst first.
const (
	// SeverityError means that objects cannot be read, or are lost, now or on the next write.
	SeverityError Severity = "Error"
	// SeverityWarning means that a next step will fail or lose something: an
	// upgrade, a renewal, a write at another version.
	SeverityWarning Severity = "Warning"
	// SeverityNote is additional information.
	SeverityNote Severity = "Note"
)

// Severities are all severities, the worst first.
var Severities = []Severity{SeverityError, SeverityWarning, SeverityNote}

// AtLeast reports whether a severity is at least as bad as another.
func (s Severity) AtLeast(other Severity) bool {
	return slices.Index(Severities, s) <= slices.Index(Severities, other)
}

// Confidence says how sure a Finding is.
type Confidence string

// The confidences.
const (
	// Certain findings were observed.
	Certain Confidence = "Certain"
	// Likely findings follow from an observation, with exceptions.
	Likely Confidence = "Likely"
	// Possible findings cannot be ruled out, and have a hint.
	Possible Confidence = "Possible"
)

// ID names a kind of finding. It does not change.
type ID string

// The kinds of findings.
const (
	StoredVersionUnknown      ID = "StoredVersionUnknown"
	StoredVersionUnserved     ID = "StoredVersionUnserved"
	StoredVersionOld          ID = "StoredVersionOld"
	StoredVersionMissing      ID = "StoredVersionMissing"
	UpgradeDropsStoredVersion ID = "UpgradeDropsStoredVersion"
	UpgradeRestrictsVersion   ID = "UpgradeRestrictsVersion"
	UpgradeLosesFeature       ID = "UpgradeLosesFeature"
	OLMRefuses                ID = "OLMRefuses"
	PreferredVersionLacks     ID = "PreferredVersionLacks"
	AutoscalerWithoutScale    ID = "AutoscalerWithoutScale"
	SelectableFieldsRefused   ID = "SelectableFieldsRefused"
	NoneTypesDiffer           ID = "NoneTypesDiffer"
	NoneLosesFields           ID = "NoneLosesFields"
	NoneHidesFields           ID = "NoneHidesFields"
	CABundleInvalid           ID = "CABundleInvalid"
	CABundleExpired           ID = "CABundleExpired"
	CABundleExpiring          ID = "CABundleExpiring"
	CABundleEmpty             ID = "CABundleEmpty"
	CABundleForeign           ID = "CABundleForeign"
	CertificateExpiring       ID = "CertificateExpiring"
	ServiceMissing            ID = "ServiceMissing"
	ServicePortMissing        ID = "ServicePortMissing"
	ServiceWithoutEndpoints   ID = "ServiceWithoutEndpoints"
	RenderingsDiffer          ID = "RenderingsDiffer"
	ReviewVersionOld          ID = "ReviewVersionOld"
	BootstrapDependency       ID = "BootstrapDependency"
	ConversionFails           ID = "ConversionFails"
	ReadFails                 ID = "ReadFails"
	ConversionUnproven        ID = "ConversionUnproven"
	PrunedAfterFailure        ID = "PrunedAfterFailure"
	StoredVersionsDoubtful    ID = "StoredVersionsDoubtful"
	MigrationFailed           ID = "MigrationFailed"
	ManagedFieldsOld          ID = "ManagedFieldsOld"
	DeprecatedVersionServed   ID = "DeprecatedVersionServed"
	NotEstablished            ID = "NotEstablished"
	NamesNotAccepted          ID = "NamesNotAccepted"
	NonStructuralSchema       ID = "NonStructuralSchema"
	PreservesUnknownFields    ID = "PreservesUnknownFields"
	TerminatingStuck          ID = "TerminatingStuck"
	PolicyNotReady            ID = "PolicyNotReady"
	PolicyWithoutDefinition   ID = "PolicyWithoutDefinition"
)

// Kind is what all findings of an ID have in common.
type Kind struct {
	ID ID
	// Severity of most findings; single ones may be less severe.
	Severity Severity
	// Means describes the kind in a few words.
	Means string
}

// Kinds are all kinds, in the order of the checks.
var Kinds = []Kind{
	{StoredVersionUnknown, SeverityError, "objects may be stored in a version that the definition does not have"},
	{StoredVersionUnserved, SeverityWarning, "objects may be stored in a version that is not served"},
	{StoredVersionOld, SeverityWarning, "objects may be stored in another version than the storage version: the API server refuses an upgrade that drops it"},
	{StoredVersionMissing, SeverityWarning, "status.storedVersions lacks the storage version: objects may become unreadable after another one"},
	{UpgradeDropsStoredVersion, SeverityError, "a manifest of --upgrade lacks a version in which objects may be stored: the API server will refuse it"},
	{UpgradeRestrictsVersion, SeverityWarning, "a manifest of --upgrade accepts fewer values at a version: API servers will refuse or prune the others when objects are written, also by a migration"},
	{UpgradeLosesFeature, SeverityWarning, "clients of a manifest of --upgrade no longer find a subresource, a selectable field, a column or a name of the kind"},
	{OLMRefuses, SeverityWarning, "the check of OLM 1 before an upgrade of a bundle will refuse a manifest of --upgrade"},
	{PreferredVersionLacks, SeverityWarning, "clients that name no version use the preferred one, which lacks a subresource, a selectable field or a column of another version"},
	{AutoscalerWithoutScale, SeverityError, "HorizontalPodAutoscalers cannot scale objects, because the preferred version has no subresource scale, now or after --upgrade"},
	{SelectableFieldsRefused, SeverityError, "all versions have the same selectableFields, and their schemas differ: the API server will refuse the manifest"},
	{NoneTypesDiffer, SeverityError, "strategy None, and a field has another type in another version"},
	{NoneLosesFields, SeverityError, "strategy None, and a served version has fields that the storage version lacks: the API server drops them on each write"},
	{NoneHidesFields, SeverityWarning, "strategy None, and the storage version has fields that another version lacks: a client that writes there drops them"},
	{CABundleInvalid, SeverityError, "the caBundle of a conversion webhook cannot be read"},
	{CABundleExpired, SeverityError, "the caBundle of a conversion webhook has expired"},
	{CABundleExpiring, SeverityWarning, "the caBundle of a conversion webhook expires soon"},
	{CABundleEmpty, SeverityWarning, "a conversion webhook behind a Service has no caBundle: only public authorities are trusted"},
	{CABundleForeign, SeverityError, "a conversion webhook serves a certificate that its caBundle does not verify"},
	{CertificateExpiring, SeverityWarning, "the certificate that a conversion webhook serves expires soon"},
	{ServiceMissing, SeverityError, "the Service of a conversion webhook does not exist"},
	{ServicePortMissing, SeverityError, "the Service of a conversion webhook lacks the port that is called"},
	{ServiceWithoutEndpoints, SeverityError, "the Service of a conversion webhook has no ready endpoint"},
	{RenderingsDiffer, SeverityWarning, "a conversion webhook or a version of the definition is in some files of -f, and not in others: a change of the values removes it"},
	{ReviewVersionOld, SeverityWarning, "a conversion webhook does not accept ConversionReview v1"},
	{BootstrapDependency, SeverityWarning, "nodes, the network, admission or certificates may need objects that a conversion webhook in the cluster converts: an outage may not end by itself"},
	{ConversionFails, SeverityError, "an object cannot be read at a served version, because its conversion fails"},
	{ReadFails, SeverityError, "an object cannot be read at a served version, for another reason"},
	{ConversionUnproven, SeverityNote, "there is no object to test a conversion webhook"},
	{PrunedAfterFailure, SeverityWarning, "status.storedVersions lists only the storage version, although a StorageVersionMigration has failed"},
	{StoredVersionsDoubtful, SeverityNote, "status.storedVersions lists only the storage version, although some objects were last written at other versions, before spec.versions changed"},
	{MigrationFailed, SeverityWarning, "a StorageVersionMigration has failed"},
	{ManagedFieldsOld, SeverityNote, "field managers have written objects at an older version than the storage version: server-side apply fails once that version is removed"},
	{DeprecatedVersionServed, SeverityNote, "a deprecated version is served"},
	{NotEstablished, SeverityError, "the API server does not serve the definition"},
	{NamesNotAccepted, SeverityError, "the API server does not accept the names of the definition"},
	{NonStructuralSchema, SeverityWarning, "a version has no structural schema"},
	{PreservesUnknownFields, SeverityWarning, "spec.preserveUnknownFields is true: the API server prunes nothing, and no webhook can convert"},
	{TerminatingStuck, SeverityError, "the deletion of the definition does not finish"},
	{PolicyNotReady, SeverityWarning, "the definition's ConversionPolicy is not Ready"},
	{PolicyWithoutDefinition, SeverityWarning, "a ConversionPolicy has no CustomResourceDefinition"},
}

// Finding is a risk of one definition.
type Finding struct {
	ID         ID         `json:"id"`
	Severity   Severity   `json:"severity"`
	Confidence Confidence `json:"confidence"`
	// CRD is the name of the definition.
	CRD string `json:"crd"`
	// Version is the affected version, empty if all are affected.
	Version string `json:"version,omitempty"`
	// Evidence is the observation and its consequence.
	Evidence string `json:"evidence"`
	// Fields are the affected fields, in the format of a policy.
	Fields []string `json:"fields,omitempty"`
	// Cure says what to do.
	Cure string `json:"cure"`
}

// certain returns a finding with the severity of its kind.
func (o *Observed) certain(id ID, version, evidence, cure string) Finding {
	kind := Kinds[slices.IndexFunc(Kinds, func(kind Kind) bool { return kind.ID == id })]
	return Finding{ID: id, Severity: kind.Severity, Confidence: Certain, CRD: o.name(), Version: version, Evidence: evidence, Cure: cure}
}

// as returns the finding with another severity and confidence.
func (f Finding) as(severity Severity, confidence Confidence) Finding {
	f.Severity, f.Confidence = severity, confidence
	return f
}

// of returns the finding with the affected fields, and none without any.
func (f Finding) of(fields []string) []Finding {
	if len(fields) == 0 {
		return nil
	}
	f.Fields = fields
	return []Finding{f}
}

// few lists the first names, and counts the others.
func few(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
