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

// AdmissionClient and the types below it are what plans are made of, for those who
// observe and carry out.
type (
	AdmissionClient     = activation.AdmissionClient
	Apply               = step.Apply
	ProbeAPIServer      = step.ProbeAPIServer
	ClearManagedFields  = step.ClearManagedFields
	CountWrites         = step.CountWrites
	Create              = step.Create
	DeleteAdmission     = step.DeleteAdmission
	DeleteChildren      = step.DeleteChildren
	DeleteDeployment    = step.DeleteDeployment
	DeleteJob           = step.DeleteJob
	DeletePlan          = step.DeletePlan
	DeleteRights        = step.DeleteRights
	DeleteRun           = step.DeleteRun
	DeleteSecret        = step.DeleteSecret
	DeleteService       = step.DeleteService
	EditVersions        = step.EditVersions
	EndingPod           = observed.EndingPod
	Event               = gate.Event
	EvictPod            = step.EvictPod
	External            = observed.External
	Grant               = rights.Grant
	Granted             = observed.Granted
	Held                = observed.Held
	AddFinalizer        = step.AddFinalizer
	ImageEndpoint       = observed.ImageEndpoint
	BackgroundCheck     = observed.BackgroundCheck
	IssueAuthority      = step.IssueAuthority
	RefreshPod          = step.RefreshPod
	Observed            = observed.Cluster
	Pin                 = step.Pin
	Pod                 = observed.Pod
	PromoteAuthority    = step.PromoteAuthority
	Proof               = observed.Proof
	PruneStoredVersions = step.PruneStoredVersions
	ReadRequests        = step.ReadRequests
	RecordDrift         = step.RecordDrift
	RemoveFinalizer     = step.RemoveFinalizer
	Request             = observed.Request
	Requests            = observed.Requests
	RestoreCRD          = step.RestoreCRD
	Run                 = observed.Run
	Settings            = observed.Settings
	Step                = step.Step
	StoredPlan          = observed.StoredPlan
	SuspendRun          = step.SuspendRun
	SwitchCRD           = step.SwitchCRD
	TakeSamples         = step.TakeSamples
	VersionChange       = step.VersionChange
	Warn                = step.Warn
	WriteCertificate    = step.WriteCertificate
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
	DefaultResampleInterval = health.DefaultResampleInterval
	DefaultSettle           = observed.DefaultSettle
	EndpointAnnotation      = names.EndpointAnnotation
	Finalizer               = names.Finalizer
	InstanceLabel           = names.InstanceLabel
	ManagedBy               = names.ManagedBy
	ManagedByLabel          = names.ManagedByLabel
	MigrationComponent      = names.MigrationComponent
	NextCertificateKey      = certificates.NextCertificateKey
	NextKeyKey              = certificates.NextKeyKey
	OversizedLag            = health.OversizedLag
	PlanKey                 = converter.PlanKey
	PlanLabel               = names.PlanLabel
	PlansAnnotation         = names.PlansAnnotation
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
	CertificateHash         = certificates.CertificateHash
	CertificateName         = names.CertificateSecret
	CertificateSecret       = observed.CertificateSecret
	ChildName               = names.Child
	ClearRightsName         = names.ClearRights
	ClearerName             = names.Clearer
	ExternalCertificateName = names.ExternalCertificateSecret
	ExternalServerName      = observed.ExternalServerName
	Grants                  = rights.Of
	ImageName               = names.Image
	IssuedName              = names.IssuedSecret
	JobEnded                = observed.JobEnded
	JoinPlans               = names.JoinPlans
	KeyPair                 = observed.KeyPair
	Labels                  = names.Labels
	MayMigrate              = migration.MayMigrate
	MigrationRightsName     = names.MigrationRights
	PlanName                = names.Ruleset
	PortOf                  = converter.PortOf
	ReadRightsName          = names.ReadRights
	ReaderName              = names.Reader
	RequestOf               = certificates.RequestOf
	RunID                   = names.RunID
	RunName                 = names.Run
	ServerName              = names.ServerName
	SourceSecret            = certificates.SourceSecret
	SplitPlans              = names.SplitPlans
	UnusedSecrets           = certificates.UnusedSecrets
)
