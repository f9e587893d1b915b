// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/conversion-operator/conversion-operator/internal/plan/activation"
	"github.com/conversion-operator/conversion-operator/internal/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/plan/health"
	"github.com/conversion-operator/conversion-operator/internal/plan/migration"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/rights"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

// What plans are made of, for those who observe and carry out: each type is that of the
// package that it is in.

type (
	// AddFinalizer is in package step.
	AddFinalizer = step.AddFinalizer
	// AdmissionClient is in package activation.
	AdmissionClient = activation.AdmissionClient
	// Apply is in package step.
	Apply = step.Apply
	// BackgroundCheck is in package observed.
	BackgroundCheck = observed.BackgroundCheck
	// ClearManagedFields is in package step.
	ClearManagedFields = step.ClearManagedFields
	// CountWrites is in package step.
	CountWrites = step.CountWrites
	// Create is in package step.
	Create = step.Create
	// DeleteAdmission is in package step.
	DeleteAdmission = step.DeleteAdmission
	// DeleteChildren is in package step.
	DeleteChildren = step.DeleteChildren
	// DeleteDeployment is in package step.
	DeleteDeployment = step.DeleteDeployment
	// DeleteJob is in package step.
	DeleteJob = step.DeleteJob
	// DeleteRuleset is in package step.
	DeleteRuleset = step.DeleteRuleset
	// DeleteRights is in package step.
	DeleteRights = step.DeleteRights
	// DeleteRun is in package step.
	DeleteRun = step.DeleteRun
	// DeleteSecret is in package step.
	DeleteSecret = step.DeleteSecret
	// DeleteService is in package step.
	DeleteService = step.DeleteService
	// EditVersions is in package step.
	EditVersions = step.EditVersions
	// EndingPod is in package observed.
	EndingPod = observed.EndingPod
	// Event is in package gate.
	Event = gate.Event
	// EvictPod is in package step.
	EvictPod = step.EvictPod
	// External is in package observed.
	External = observed.External
	// Grant is in package rights.
	Grant = rights.Grant
	// Granted is in package observed.
	Granted = observed.Granted
	// Held is in package observed.
	Held = observed.Held
	// ImageEndpoint is in package observed.
	ImageEndpoint = observed.ImageEndpoint
	// IssueAuthority is in package step.
	IssueAuthority = step.IssueAuthority
	// Observed is in package observed.
	Observed = observed.Cluster
	// Pin is in package step.
	Pin = step.Pin
	// Pod is in package observed.
	Pod = observed.Pod
	// ProbeAPIServer is in package step.
	ProbeAPIServer = step.ProbeAPIServer
	// PromoteAuthority is in package step.
	PromoteAuthority = step.PromoteAuthority
	// Proof is in package observed.
	Proof = observed.Proof
	// PruneStoredVersions is in package step.
	PruneStoredVersions = step.PruneStoredVersions
	// ReadRequests is in package step.
	ReadRequests = step.ReadRequests
	// RecordDrift is in package step.
	RecordDrift = step.RecordDrift
	// RefreshPod is in package step.
	RefreshPod = step.RefreshPod
	// RemoveFinalizer is in package step.
	RemoveFinalizer = step.RemoveFinalizer
	// Request is in package observed.
	Request = observed.Request
	// Requests is in package observed.
	Requests = observed.Requests
	// RestoreCRD is in package step.
	RestoreCRD = step.RestoreCRD
	// Run is in package observed.
	Run = observed.Run
	// Settings is in package observed.
	Settings = observed.Settings
	// Step is in package step.
	Step = step.Step
	// StoredRevision is in package observed.
	StoredRevision = observed.StoredRevision
	// SuspendRun is in package step.
	SuspendRun = step.SuspendRun
	// SwitchCRD is in package step.
	SwitchCRD = step.SwitchCRD
	// TakeSamples is in package step.
	TakeSamples = step.TakeSamples
	// VersionChange is in package step.
	VersionChange = step.VersionChange
	// Warn is in package step.
	Warn = step.Warn
	// WriteCertificate is in package step.
	WriteCertificate = step.WriteCertificate
)

// Values that those share who observe and carry out.
const (
	AdmitPath               = activation.AdmitPath
	CAKey                   = observed.CAKey
	CertificateAnnotation   = names.CertificateAnnotation
	ComponentLabel          = names.ComponentLabel
	ContainerPort           = converter.ContainerPort
	ConvertPath             = converter.ConvertPath
	ConverterComponent      = names.ConverterComponent
	DefaultCADuration       = certificates.DefaultCADuration
	DefaultConverterAccount = converter.DefaultConverterAccount
	DefaultDuration         = certificates.DefaultDuration
	DefaultFailureWindow    = health.DefaultFailureWindow
	DefaultPriorityLevel    = migration.DefaultPriorityLevel
	DefaultProofLifetime    = observed.DefaultProofLifetime
	DefaultPropagationDelay = observed.DefaultPropagationDelay
	EndpointAnnotation      = names.EndpointAnnotation
	Finalizer               = names.Finalizer
	InstanceLabel           = names.InstanceLabel
	ManagedBy               = names.ManagedBy
	ManagedByLabel          = names.ManagedByLabel
	MigrationComponent      = names.MigrationComponent
	NextCertificateKey      = certificates.NextCertificateKey
	NextKeyKey              = certificates.NextKeyKey
	OversizedLag            = health.OversizedLag
	RulesetKey              = converter.RulesetKey
	RevisionLabel           = names.RevisionLabel
	RevisionsAnnotation     = names.RevisionsAnnotation
	PolicyAnnotation        = names.PolicyAnnotation
	RunLabel                = names.RunLabel
	TriggerAnnotation       = certificates.TriggerAnnotation
	TrustedAnnotation       = certificates.TrustedAnnotation
	VerificationComponent   = names.VerificationComponent
)

// Functions that answer by a policy, a Secret or a Job alone.
var (
	AdmissionApply          = activation.AdmissionApply
	AdmissionConfiguration  = activation.AdmissionConfiguration
	AdmissionName           = names.Admission
	AuthorityName           = names.AuthoritySecret
	CertificateName         = names.CertificateSecret
	CertificateSecret       = observed.CertificateSecret
	ChildName               = names.Child
	ClearRightsName         = names.CleanRights
	ExternalCertificateName = names.ExternalCertificateSecret
	ExternalServerName      = observed.ExternalServerName
	Grants                  = rights.Of
	ImageName               = names.Image
	IssuedName              = names.IssuedSecret
	JobEnded                = observed.JobEnded
	KeyPair                 = observed.KeyPair
	Labels                  = names.Labels
	MayMigrate              = migration.MayMigrate
	MigrationRightsName     = names.MigrationRights
	PlanName                = names.Ruleset
	PortOf                  = converter.PortOf
	ReadRightsName          = names.ReadRights
	RequestOf               = certificates.RequestOf
	RunID                   = names.RunID
	RunName                 = names.Run
	ServerName              = names.ServerName
	SourceSecret            = certificates.SourceSecret
	SplitRevisions          = names.SplitRevisions
	UnusedSecrets           = certificates.UnusedSecrets
)
